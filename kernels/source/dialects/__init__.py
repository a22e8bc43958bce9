"""One module an API: renders a kernel's description and body to a program's text."""
