"""A policy of one's own: the quick servers for who has a deadline, any idle one for the rest."""

from orchestrator.queueing import policies


class Policy(policies.Policy):
    def __init__(self, generator, soon_s=0.2):
        super().__init__(generator)
        self.soon_s = soon_s

    def rank(self, request, now):  # noqa: ARG002
        return request.deadline  # the earliest first; without one it is infinite

    def choose(self, request, servers, now):
        if request.deadline - now < self.soon_s:
            return min(servers, key=lambda server: server.expected_s[request.kind])
        return next(iter(servers))
