"""The demo: a small town that the package makes up, three queries over it, and a live view."""

from kelda.demo.show import run_demo

__all__ = ["run_demo"]
