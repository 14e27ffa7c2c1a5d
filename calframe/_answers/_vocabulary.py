"""The words that tell whether a number in a statement is a confidence."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# words that may stand beside a bare number without making it the number of something; also letters of options
FILLERS = words_of(
    "a about above actually against all almost although am an and any anywhere approx approximately are around as "
    "assign at b barely based basically be because being below best bet bit but by c ca call case circa close correct "
    "could d degree due e easily essentially estimate estimated exactly excess fairly false favor favour feel feeling "
    "feels figure final firm for forecast from give given go good greater guess gut had has have here high higher hmm "
    "honestly how hunch i id if in inclined incorrect is it its just least less let level like likely little low "
    "lower mark max maximum maybe me medium min minimum mistaken moderate more most mostly must my near nearly "
    "neighborhood neighbourhood no north not now number of ok okay on one only or out over overall perhaps personally "
    "possibly predict predicted predicting prediction pretty probably put quite range rate rated rather rating region "
    "right roughly say scale score shot should shy since slightly so solid some something somewhere still suppose take "
    "tempted than that that's the there think this though time times to tops true um under upward upwards us value "
    "well were when while will with would wrong yes you your : = |"
)
VAGUE = words_of("number figure value")  # beside a number without a unit they leave open of what it is
OPINION_NOUNS = words_of("confidence certainty belief credence conf")
OPINION_STATES = words_of("confident confidently sure certain positive convinced")
CHANCES = words_of("probability probabilities likelihood chance chances odds prob pr")
LIKELY = CHANCES | words_of("likely probable")
DOUBT_NOUNS = words_of("uncertainty doubt doubts")
NO_DOUBT = words_of("no without beyond")  # before doubt
DOUBTS = DOUBT_NOUNS | words_of("unsure uncertain doubtful unlikely improbable")
CUES = OPINION_NOUNS | OPINION_STATES | LIKELY | DOUBTS
# what may stand between a number and its word: "85% of the time I am sure", "a 70% level of confidence"
LINKS = words_of(
    "a absolutely am an as at being completely degree fairly highly i in is it least level most my of or quite rate "
    "so that's the this totally very"
)
LABELS = words_of(": =")
UNRELATED = words_of("log logprob logprobs threshold interval intervals limit limits bound bounds ratio ratios")
NEGATIONS = words_of("not never cannot nothing nowhere nobody hardly scarcely by")  # by 5% is a change
COMPARED = words_of("fewer greater higher less lower more")  # "30% lower" is no confidence, "80% more or less" is
SOFT = words_of(
    "a all anywhere at be close completely even ever exactly fully is near quite say to"
)  # between a negation and its number
EVENTS = words_of("time times cases")  # "80% of the time"
WRONG = "wrong|incorrect|mistaken"  # said of an answer; false may be one
