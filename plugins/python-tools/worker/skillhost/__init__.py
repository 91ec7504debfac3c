"""The API for tool modules of a skill.

    from skillhost import define_tool

    @define_tool(description="Adds two numbers.")
    def add(a: int, b: int = 1) -> int:
        return a + b
"""

from ._context import ToolContext, ToolInvocation
from ._define import Tool, define_tool
from ._results import ToolResult

__all__ = ["Tool", "ToolContext", "ToolInvocation", "ToolResult", "define_tool"]
