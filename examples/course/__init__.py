"""The course: each chapter is written once, in both languages, and its notebooks and pages are made from that text.

``python -m examples.course`` writes ``docs/course``; ``python -m examples.course run NOTEBOOK`` runs a notebook.
"""
