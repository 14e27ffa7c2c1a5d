"""Rows in clusters, counted from the most confident down, or on both sides of thresholds: what their clusters share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import changes
from calframe._kernels._cluster_sums import ClusterSums, Events
from calframe._typing import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterRows:
    """Rows and their clusters.

    Attributes
    ----------
    segment : ndarray of int64
        The segment of each row.
    cluster : ndarray of int64
        A number for each cluster; none lies in two segments, and a row without a cluster has a number of its own.
    score, label, weight : ndarray of float64
        The rows.
    together, alone : ndarray of float64
        The weight of a row in the total of its cluster, and by itself; see `Events`.
    """

    segment: Ints
    cluster: Ints
    score: Floats
    label: Floats
    weight: Floats
    together: Floats
    alone: Floats

    @classmethod
    def of(
        cls, segment: Ints, cluster: Ints, score: Floats, label: Floats, weight: Floats, *, counts: bool
    ) -> ClusterRows:
        """Tell the clusters of each segment apart.

        Parameters
        ----------
        segment : ndarray of int64
            The segment of each row.
        cluster : ndarray of int64
            The cluster of each row, below 0 if it is one of its own.
        score, label, weight : ndarray
            The rows.
        counts : bool
            Whether weights are numbers of rows.
        """
        own, width = cluster < 0, int(cluster.max(initial=0)) + 1
        root = np.sqrt(weight) if counts else weight
        return cls(
            segment=segment,
            cluster=np.where(own, -1 - np.arange(len(cluster)), segment * width + cluster),
            score=score,
            label=label,
            weight=weight,
            together=np.where(own, root, weight),
            alone=root,
        )

    def answered(self, confidence: Floats, right: Floats) -> ClusterSums:
        """Return what clusters share of being right from each distinct confidence of a segment up.

        Parameters
        ----------
        confidence, right : ndarray of float64
            How confident each row is, and whether it is right.

        Returns
        -------
        ClusterSums
            Of the cells of `Answered`: segment after segment, the most confident first.
        """
        order = np.lexsort((-confidence, self.segment))
        segment, confidence = self.segment[order], confidence[order]
        new = changes(segment)
        cell = np.cumsum(new | changes(confidence)) - 1
        events = Events(
            value=right[order],
            weight=np.ones_like(confidence),
            together=self.together[order],
            alone=self.alone[order],
            counted=self.weight[order],
        )
        return ClusterSums.running(
            self.cluster[order], None, cell, events, cell[new], int(cell[-1]) + 1 if len(cell) else 0
        )

    def decided(self, thresholds: Floats, acted: Floats, left: Floats) -> ClusterSums:
        """Return what clusters share of a quantity that rows have by what is decided, at ascending thresholds.

        Parameters
        ----------
        thresholds : ndarray of float64
            Rows with a score of at least the threshold are acted on.
        acted, left : ndarray of float64
            The quantity of each row if it is acted on, and if it is left alone.

        Returns
        -------
        ClusterSums
            Arrays of shape (n_segments, n_thresholds), of the segments that have rows.
        """
        present, segment = np.unique(self.segment, return_inverse=True)
        width = len(thresholds) + 1  # beyond the last one nothing is looked at
        first = segment * width
        flips = first + np.searchsorted(thresholds, self.score, side="right")  # below the lowest all are acted on
        one, nothing = np.ones_like(self.weight), np.zeros_like(self.weight)
        events = Events(
            value=np.concatenate([acted, left - acted]),
            weight=np.concatenate([one, nothing]),
            together=np.tile(self.together, 2),
            alone=np.tile(self.alone, 2),
            counted=np.concatenate([self.weight, nothing]),
        )
        cells = len(present) * width
        found = ClusterSums.running(
            np.tile(self.cluster, 2),
            np.tile(np.arange(len(self.score)), 2),
            np.concatenate([first, flips]),
            events,
            np.arange(0, cells, width),
            cells,
        )
        return found.each(lambda values: values.reshape(len(present), width)[:, :-1])
