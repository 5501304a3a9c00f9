"""The report as data: what each section says, before any template or chart exists."""
