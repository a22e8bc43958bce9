"""Parts of a report that are about one kind of experiment."""
