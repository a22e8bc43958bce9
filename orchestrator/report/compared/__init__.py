"""A comparison for people and for programs: a table, with what must be known to read it; HTML, Markdown, JUnit."""

from .content import Content, answer, fails, headline, notes, usable
from .html import as_html
from .junit import as_junit
from .markdown import as_markdown
from .table import lines_of, narrow, section, table
