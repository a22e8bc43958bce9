"""A strategy of one's own: the batch is doubled as long as that brings more frames per second."""

from orchestrator.scheduling.strategies import Slot


class Strategy:
    done = False  # what follows is not known before the results are there

    def __init__(self, place, gain=1.1):  # noqa: ARG002
        self.gain = gain
        self.results = []

    def tell(self, results):
        self.results = [each for each in results if each.block and each.block.rate]

    def ask(self):
        *before, last = sorted(self.results, key=lambda each: each.job.cell.batch or 1) or [None]
        if last is None or (before and rate(last) < self.gain * rate(before[-1])):
            return []
        cell = last.job.cell.at("batch", 2 * (last.job.cell.batch or 1))
        return [Slot(cell, last.job.candidates, 0)]


def rate(result):
    return result.block.rate.median_per_s
