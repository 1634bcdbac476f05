"""What the annex of tools adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"tools": "sgdx_t5x.tools.commands"}
SUMMARIES = {
  "tools cases": "add cases for tools of your own, and check them",
  "tools check": "whether an assistant breaks: old words and new",
  "tools export": "write schemas as tools of a language model",
  "tools frozen": "write the requests that all models are asked",
  "tools import": "begin a suite of tools of your own: MCP, OpenAPI",
  "tools requests": "write requests with tools, one per frame",
  "tools reword": "write rewordings of a suite's tools",
  "tools run": "send requests to an endpoint, answers to a file",
  "tools score": "score the answers: tools, arguments, states",
}
SCORE_TABLES = {"calls": "sgdx_t5x.tools.call_shares"}
REPORT_OPTIONS = {"tools": "sgdx_t5x.tools.commands"}
REPORT_SECTIONS = {
  "calls": "sgdx_t5x.tools.report_section",
  "tools": "sgdx_t5x.tools.check.section",
}
OTHER_ROWS = dict.fromkeys(
  ("calls", "custom_id", "tool_calls", "response"),
  (
    "an API response or a tool call, not an answer to a text prompt",
    "score answers to `sgdx tools requests` with `sgdx tools score`",
  ),
)
OTHER_SCHEMAS = dict.fromkeys(
  (
    "function", "inputSchema", "input_schema", "openapi", "parameters", "result", "tools",
  ),
  (
    "definitions of tools, not services in SGD's form",
    "sgdx tools import FILE --out suite --trackers services makes services/test/schema.json of it",
  ),
)  # fmt: skip
# Requests that show what trackers see, the tools of the frame's service.
USUAL_FIELDS = {"format": "tools", "delivery": "gold"}
FORMATS = {"tools": "sgdx_t5x.tools.format:ToolCalls"}
