"""The devices of this host: found, identified, described, admitted."""
