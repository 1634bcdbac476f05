"""The same calls as answers in every form that `sgdx tools score` reads."""

import json

import tiny_corpus as tiny

from sgdx_t5x.corpus.dialogue import State
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.scoring import score_predictions
from sgdx_t5x.tools.calls import calls_text, state_calls
from sgdx_t5x.tools.format import calls_format

VARIANTS = ("original", "v3")


def pairs_of(corpus, variant):
  return service_pairs(corpus.schema("test"), corpus.schema("test", variant))


def calls_of(corpus, states, variants=VARIANTS, intent="Do"):
  """Request id -> calls, for states in the form of tiny.GOLD."""
  found = {}
  for variant in variants:
    pairs = pairs_of(corpus, variant)
    for dialogue_id, turns in states.items():
      for i, frames in enumerate(turns):
        for service, values in frames.items():
          key = f"{variant}/test/{dialogue_id}-{2 * i:03d}-{service}/*"
          found[key] = state_calls(pairs[service], State(intent, (), values))
  return found


def write(path, rows):
  return str(tiny.write_rows(path, rows))


def bare(calls):
  return [{"id": key, "calls": found} for key, found in calls.items()]


def score(corpus, path, **settings):
  settings = {"prompt_format": calls_format({"all": path}, "test"), **settings}
  return score_predictions(corpus, "test", {"all": path}, bootstrap_samples=0, **settings)


def tool_calls(calls):
  """The openai package's ChatCompletionMessageFunctionToolCall; arguments are a JSON string."""
  return [
    {
      "id": f"call_{i}",
      "type": "function",
      "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
    }
    for i, call in enumerate(calls)
  ]


def completion(calls):
  message = {"role": "assistant", "content": None, "tool_calls": tool_calls(calls)}
  choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
  return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def anthropic_message(calls):
  blocks = [
    {"type": "tool_use", "id": f"toolu_{i}", "name": call["name"], "input": call["arguments"]}
    for i, call in enumerate(calls)
  ]
  return {"role": "assistant", "content": [{"type": "text", "text": "Sure."}, *blocks]}


def converse(calls):
  """Bedrock's answer of Converse."""
  blocks = [
    {"toolUse": {"toolUseId": "t", "name": call["name"], "input": call["arguments"]}}
    for call in calls
  ]
  content = [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "Sure."}, *blocks]
  return {
    "output": {"message": {"role": "assistant", "content": content}},
    "stopReason": "tool_use",
  }


def langchain(calls):
  """LangChain's AIMessage.model_dump()."""
  listed = [
    {"name": x["name"], "args": x["arguments"], "id": "x", "type": "tool_call"} for x in calls
  ]
  about = {"additional_kwargs": {}, "response_metadata": {"finish_reason": "tool_calls"}}
  return {"content": "", **about, "type": "ai", "tool_calls": listed, "invalid_tool_calls": []}


def inspect_message(calls):
  """Inspect's ChatMessageAssistant.model_dump()."""
  listed = [
    {"id": "x", "function": x["name"], "arguments": x["arguments"], "parse_error": None}
    for x in calls
  ]
  return {"role": "assistant", "content": [{"type": "text", "text": ""}], "tool_calls": listed}


def in_parameters(arguments):
  return "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in arguments.items())


def in_python(calls):
  """Python calls, the answer format in BFCL of models without a tool interface."""
  shown = (
    f"{x['name']}({', '.join(f'{k}={v!r}' for k, v in x['arguments'].items())})" for x in calls
  )
  return f"[{', '.join(shown)}]"


FORMS = {
  "bare": lambda k, c: {"id": k, "calls": c},
  "bare, arguments as text": lambda k, c: {
    "id": k,
    "calls": [{**x, "arguments": json.dumps(x["arguments"])} for x in c],
  },
  "bare, all as text": lambda k, c: {"id": k, "calls": json.dumps(c)},
  "text": lambda k, c: {"id": k, "prediction": calls_text(c)},
  "t5x": lambda k, c: {"inputs": {"example_id_pretokenized": k}, "prediction": calls_text(c)},
  "openai": lambda k, c: {"id": k, "response": completion(c)},
  "openai, in the row": lambda k, c: {**completion(c), "custom_id": k},
  "openai, through a gateway": lambda k, c: {**completion(c), "custom_id": k, "message": "ok"},
  "openai, message": lambda k, c: {"id": k, "message": completion(c)["choices"][0]["message"]},
  "openai batch": lambda k, c: {
    "id": "batch_req_1",
    "custom_id": k,
    "response": {"status_code": 200, "request_id": "r", "body": completion(c)},
    "error": None,
  },
  "openai responses": lambda k, c: {
    "id": k,
    "response": {
      "object": "response",
      "output": [{"type": "reasoning"}]
      + [{"type": "function_call", **x["function"]} for x in tool_calls(c)],
    },
  },
  "anthropic": lambda k, c: {"custom_id": k, **anthropic_message(c)},
  "anthropic, response": lambda k, c: {"id": k, "response": anthropic_message(c)},
  "anthropic batch": lambda k, c: {
    "custom_id": k,
    "result": {"type": "succeeded", "message": anthropic_message(c)},
  },
  "bfcl": lambda k, c: {"id": k, "result": [{x["name"]: json.dumps(x["arguments"])} for x in c]},
  "bfcl, text": lambda k, c: {"id": k, "result": in_python(c)},
  "bfcl, quoted and fenced": lambda k, c: {"id": k, "result": f'```python\n"{in_python(c)}"\n```'},
  "bfcl, quoted as JSON": lambda k, c: {"id": k, "result": json.dumps(in_python(c))},
  "old function calling": lambda k, c: {
    "id": k,
    "message": {
      "role": "assistant",
      "content": None,
      "function_call": tool_calls(c)[0]["function"],
    },
  },
  "openai, spread over choices": lambda k, c: {
    "id": k,
    "choices": [
      {"index": 0, "message": {"role": "assistant", "content": "One moment."}},
      *completion(c)["choices"],
    ],
  },
  "openai, custom tool": lambda k, c: {
    "id": k,
    "message": {
      "role": "assistant",
      "tool_calls": [
        {"type": "custom", "custom": {"name": x["name"], "input": json.dumps(x["arguments"])}}
        for x in c
      ],
    },
  },
  "openai responses, with its tools": lambda k, c: {
    "id": k,
    "response": {
      "object": "response",
      "status": "completed",
      "error": None,
      "incomplete_details": None,
      "tools": [{"type": "function", "name": "x"}],
      "tool_choice": "auto",
      "parallel_tool_calls": True,
      "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        *({"type": "function_call", "status": "completed", **x["function"]} for x in tool_calls(c)),
      ],
    },
  },
  "converse": lambda k, c: {"id": k, "response": converse(c)},
  "converse, message": lambda k, c: {"id": k, "message": converse(c)["output"]["message"]},
  "ollama": lambda k, c: {
    "id": k,
    "response": {
      "model": "m",
      "message": {"role": "assistant", "content": "", "tool_calls": [{"function": x} for x in c]},
      "done": True,
      "done_reason": "stop",
    },
  },
  "gemini": lambda k, c: {
    "id": k,
    "response": {
      "candidates": [
        {
          "content": {
            "role": "model",
            "parts": [
              {"functionCall": {"name": x["name"], "args": x["arguments"]}, "thoughtSignature": "x"}
              for x in c
            ],
          },
          "finishReason": "STOP",
        }
      ]
    },
  },
  "langchain": lambda k, c: {"id": k, "message": langchain(c)},
  "langchain, messages_to_dict": lambda k, c: {
    "id": k,
    "response": {"type": "ai", "data": langchain(c)},
  },
  "langchain, dumpd": lambda k, c: {
    "id": k,
    "response": {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": langchain(c)},
  },
  "langchain, what the service sent": lambda k, c: {
    "id": k,
    "message": {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": tool_calls(c)}},
  },
  "langchain, content blocks": lambda k, c: {
    "id": k,
    "message": {"type": "ai", "content": langchain(c)["tool_calls"]},
  },
  "inspect": lambda k, c: {"id": k, "message": inspect_message(c)},
  "inspect, output": lambda k, c: {
    "id": k,
    "output": {
      "model": "m",
      "choices": [{"message": inspect_message(c), "stop_reason": "tool_calls"}],
      "completion": "",
      "error": None,
    },
  },
  "cohere": lambda k, c: {
    "id": k,
    "message": {
      "role": "assistant",
      "tool_calls": [{"name": x["name"], "parameters": x["arguments"]} for x in c],
    },
  },
}
TEXTS = {  # of messages whose calls the server left in their text
  "bare": lambda c: "\n".join(map(json.dumps, c)),
  "list": lambda c: f"I call these: {json.dumps(c, indent=2)}",
  "fenced": lambda c: f"Sure!\n```json\n{json.dumps(c)}\n```\nThat is all {{it}} takes.",
  "fenced, several blocks": lambda c: "\n".join(f"```json\n{json.dumps(x)}\n```" for x in c),
  "tags": lambda c: "\n".join(f"<tool_call>\n{json.dumps(x)}\n</tool_call>" for x in c),
  "tags, the last not closed": lambda c: "<tool_call>" + "<tool_call>".join(map(json.dumps, c)),
  "after thoughts": lambda c: f'<think>{{"name": "x", "arguments": {{}}}}</think>{json.dumps(c)}',
  "as tool_calls": lambda c: json.dumps({"tool_calls": tool_calls(c)}),
  "parameters": lambda c: json.dumps(
    [{"name": x["name"], "parameters": x["arguments"]} for x in c]
  ),
  "mistral": lambda c: f"[TOOL_CALLS]{json.dumps(c)}",
  "llama": lambda c: "".join(
    f"<function={x['name']}>{json.dumps(x['arguments'])}</function>" for x in c
  ),
  "qwen coder": lambda c: "".join(
    f"<tool_call>\n<function={x['name']}>\n{in_parameters(x['arguments'])}</function>\n</tool_call>"
    for x in c
  ),
  "python": in_python,
  "python's quotes": lambda c: f"```\n{c!r}\n```",
  "tool_input": lambda c: json.dumps(
    [{"tool": x["name"], "tool_input": x["arguments"]} for x in c]
  ),
}
