"""The test cases of a survey of calibration, where the true probability of each row is known; see which_map.py.

Silva Filho et al. (2023), Classifier calibration: a survey (https://doi.org/10.1007/s10994-023-06336-7), sections 5.2
to 5.4. Each of two classes is a mixture of two Gaussians; a third is narrow and lies in the middle. The survey writes
Gaussian(64, 1280) and so on, and does not say whether 1280 is a variance or a standard deviation. Here it is a
variance: 960 to 1280 are about 32 squared, half the distance of the means, and only so is one of the survey's two
logistic models under-confident, as it says.

Where only the survey's words are known, not its settings, a case is made here: not monotone is a straight model that is
blind to the third class, and the scores of three classes are true probabilities, distorted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

Array = NDArray[np.float64]

MIXTURES = {  # of each class: the two arguments of each Gaussian of x
    "1": [(-4.0, 960.0), (64.0, 1280.0)],
    "2": [(4.0, 980.0), (-72.0, 1024.0)],
    "3": [(0.0, 8.0)],
}
UNDER_CONFIDENT, OVER_CONFIDENT = 0.01, 0.05  # slopes of the two logistic models
CLASSES = tuple(MIXTURES)


def drawn(
    classes: Sequence[str], rows: int, rng: np.random.Generator, *, variance: bool = True
) -> tuple[Array, NDArray[np.str_], Array]:
    """Draw x and its class, and return them with the logarithm of the true probability of each class."""
    label = rng.choice(list(classes), rows)
    hidden = rng.random(rows) < 0.5
    x, density = np.empty(rows), []
    for name in classes:
        mean, second = np.array(MIXTURES[name]).T
        spread = second if variance else second**2
        part = np.where(hidden, 0, len(mean) - 1)
        x = np.where(label == name, rng.normal(mean[part], np.sqrt(spread[part])), x)
    for name in classes:
        mean, second = np.array(MIXTURES[name]).T[:, :, None]
        spread = second if variance else second**2
        each = -((x - mean) ** 2) / (2.0 * spread) - 0.5 * np.log(spread)
        density.append(np.logaddexp.reduce(each) - np.log(len(mean)))
    return x, label, np.array(density) - np.logaddexp.reduce(density)


def expit(z: Array) -> Array:
    """Return probabilities of log-odds."""
    return np.exp(-np.logaddexp(0.0, -z))


def softmax(z: Array) -> Array:
    """Return the probabilities of the classes, one a row of z."""
    return np.exp(z - np.logaddexp.reduce(z))


def case(name: str, label: Any, **columns: Array) -> pl.DataFrame:
    """Return a case as a table."""
    return pl.DataFrame({"y": label, **columns}).select(pl.lit(name).alias("case"), pl.all())


def two_classes(rows: int, rng: np.random.Generator, network: Any = None) -> pl.DataFrame:
    """Return the cases of one score a row: class 1 or not, the score p and the true probability q."""
    x, label, truth = drawn("12", rows, rng)
    scores = {
        "under-confident": expit(UNDER_CONFIDENT * x),
        "over-confident": expit(OVER_CONFIDENT * x),
        "calibrated": np.exp(truth[0]),
    }
    if network is not None:
        scores["network"] = network.predict_proba(x[:, None])[:, 1]
    cases = [case(name, label == "1", p=score, q=np.exp(truth[0])) for name, score in scores.items()]
    x, label, truth = drawn("123", rows, rng)  # in the middle the third class takes nearly all: the rate falls there
    return pl.concat([*cases, case("not monotone", label == "1", p=expit(0.03 * x - 0.87), q=np.exp(truth[0]))])


def three_classes(rows: int, rng: np.random.Generator, network: Any = None) -> pl.DataFrame:
    """Return the cases of three classes: the class, scores p_1 to p_3 and the true probabilities q_1 to q_3."""
    x, label, truth = drawn("123", rows, rng)
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    scores = {
        "over-confident": softmax(2.0 * truth),
        "under-confident": softmax(0.4 * truth),
        "class 3 favoured": softmax(truth + np.array([[0.0], [0.0], [1.5]])),
        "classes mixed": softmax(mixing @ truth),
        "calibrated": softmax(truth),
    }
    if network is not None:
        scores["network"] = network.predict_proba(x[:, None]).T
    true = dict(zip(("q_1", "q_2", "q_3"), np.exp(truth), strict=True))
    return pl.concat(
        [case(name, label, **dict(zip(("p_1", "p_2", "p_3"), p, strict=True)), **true) for name, p in scores.items()]
    )


def networks(rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Train the survey's network, of two hidden layers of 128 units, on two classes and on three."""
    trained = []
    for classes in ("12", "123"):
        x, label, _ = drawn(classes, rows, rng)
        target = label == "1" if classes == "12" else label
        trained.append(MLPClassifier((128, 128), random_state=0).fit(x[:, None], target))
    return trained[0], trained[1]
