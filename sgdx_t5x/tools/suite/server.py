"""The tools of an MCP server that a command starts; it is asked for `tools/list` alone."""

import asyncio
import os
import shlex
from typing import Any

from sgdx_t5x.errors import SgdxError, UsageError, first_line, require

_SECONDS = 120.0  # for a start that first downloads the server, as npx does
_EXPECTED = "a command that starts an MCP server on its stdin and stdout"


def server_tools(command: str) -> dict[str, Any]:
  """Returns {"tools": [...]}, all pages of tools/list.

  Args: command, program and arguments, quoted as in a shell. Raises SgdxError: the package mcp is
  not installed; the server does not start or answer.
  """
  try:
    words = shlex.split(command)
  except ValueError:
    words = []
  if not words:
    raise UsageError(f"--command {command!r}", expected=_EXPECTED, fix="--command 'npx my-server'")
  require("mcp", extra="tools", why="sgdx tools import --command", packages="mcp")
  try:
    with open(os.devnull, "w") as log:
      return {"tools": asyncio.run(asyncio.wait_for(_listed(words, log), _SECONDS))}
  except (Exception, BaseExceptionGroup) as error:
    reason = _reason(error)
    raise SgdxError(
      f"--command {command}: {reason}",
      expected=_EXPECTED,
      fix="run the command alone to see what it says; or pass a file with its tools/list",
    ) from None


async def _listed(words: list[str], log: Any) -> list[dict[str, Any]]:
  """Returns the definitions as the server sends them."""
  import mcp
  from mcp import types
  from mcp.client.stdio import stdio_client

  server = mcp.StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
  tools: list[dict[str, Any]] = []
  async with stdio_client(server, errlog=log) as streams, mcp.ClientSession(*streams) as session:
    await session.initialize()
    params = None
    while True:
      page = (await session.list_tools(params=params)).model_dump(
        mode="json", by_alias=True, exclude_unset=True
      )
      tools += page["tools"]
      if not page.get("nextCursor"):
        return tools
      params = types.PaginatedRequestParams(cursor=page["nextCursor"])


def _reason(error: BaseException) -> str:
  """Returns the first sentence of an error, or of the first one in a group."""
  while isinstance(error, BaseExceptionGroup):
    error = error.exceptions[0]
  if isinstance(error, TimeoutError):
    return f"no answer within {_SECONDS:.0f} seconds"
  return first_line(error)
