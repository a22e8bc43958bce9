"""Engines whose program a person brings in a folder (`farm engines add`): each adds its words and reads its output."""

from orchestrator.model.experiment.engine_settings import Unread

from .base import FolderEngine
from .tool import STAGE, TOKENS, Asked, Told, WrongDevice, agreed, delegates, number, one_match
