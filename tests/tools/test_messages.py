"""Answers as services send them: calls left in text, failures, answers cut off, unknown forms."""

import pytest
import tiny_corpus as tiny
from answer_forms import FORMS, TEXTS, bare, calls_of, score, write

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.call_predictions import row_answer
from sgdx_t5x.tools.call_texts import Untyped, python_calls, text_calls, written_calls
from sgdx_t5x.tools.calls import call_parts
from sgdx_t5x.tools.format import calls_format
from sgdx_t5x.tools.messages import Answer, has_plain_calls, read_answer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return open_corpus(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


@pytest.mark.parametrize("form", TEXTS)
def test_calls_in_text_count_on_request_and_are_shown_otherwise(form, corpus, tmp_path):
  rows = [
    {"id": key, "message": {"role": "assistant", "content": TEXTS[form](calls), "tool_calls": []}}
    for key, calls in calls_of(corpus, tiny.GOLD, ["original"]).items()
  ]
  file = write(tmp_path / "a.jsonl", rows)
  scored = score(corpus, file, prompt_format=calls_format({"all": file}, "test", from_text=True))
  assert scored.frames["original"].metrics["joint_goal_accuracy"].tolist() == [1.0] * 6
  assert "|calls:from-text|" in scored.signature
  silent = score(corpus, file)
  rates = silent.further["calls"]["original"]["all"]
  assert rates["in_text"]["value"] == rates["missed"]["value"] == 1.0
  assert "calls:" not in silent.signature
  assert "6 of 6 (original); the first: " in silent.notes[1]
  assert "Banks_1__Do" in silent.notes[1]


def test_the_short_way_agrees_with_the_long_one():
  calls = [{"name": "f", "arguments": {}}]
  body = FORMS["openai"]("x", calls)["response"]
  assert has_plain_calls(body)
  assert read_answer(body, "").calls == [{"name": "f", "arguments": "{}"}]
  (choice,) = body["choices"]
  for change in ({"finish_reason": "length"}, {"error": {"code": 1}}, {"message": {}}):
    assert not has_plain_calls({**body, "choices": [{**choice, **change}]})
  assert not has_plain_calls({**body, "error": "x"})
  message = {**choice["message"], "toolCalls": [1]}
  assert not has_plain_calls({**body, "choices": [{**choice, "message": message}]})


@pytest.mark.parametrize(
  "text",
  [
    "",
    "Which bank?",
    "Hello (again).",
    '{"name": "Anna"}',
    '[{"name": "find", "parameters": {"type": "object", "properties": {}}}]',  # a definition
    "[" * 3_000,
    '{"a": ' * 3_000,
    "{[" * 50_000,
    "<parameter=a>" * 50_000,
    "x<arg_key>" * 50_000,
    "f(a=b" * 10_000,
  ],
)
def test_texts_without_calls(text):
  assert text_calls(text) is None


def test_a_call_in_tags_that_is_no_json_is_a_malformed_call(corpus, tmp_path):
  text = '<tool_call>{"name": "Banks_1__Do", "arguments": {"kind": }</tool_call>'
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  rows[0] = {"id": rows[0]["id"], "message": {"role": "assistant", "content": text}}
  file = write(tmp_path / "a.jsonl", rows)
  from_text = calls_format({"all": file}, "test", from_text=True)
  rates = score(corpus, file, prompt_format=from_text).further["calls"]["original"]["all"]
  assert rates["invalid_json"]["value"] == 1 / 6


@pytest.mark.parametrize(
  ("literal", "value"),
  [
    ("true", True),
    ("False", False),
    ("null", None),
    ("CHECKING", "CHECKING"),
    ("-2.5", -2.5),
    ("[true, 'x']", [True, "x"]),
    ("{'a': false}", {"a": False}),
    ("NaN", "NaN"),
    ("-Infinity", "-Infinity"),
    ("Color.RED", "Color.RED"),
    ("date('y', 1)", "date('y', 1)"),
    ("1+2j", "1+2j"),
    ("b'x'", "b'x'"),
    # No Python at all.
    ("2019-10-11", "2019-10-11"),
    ("2019-03-01", "2019-03-01"),
    ("10:30", "10:30"),
    ("New York", "New York"),
    ("$5", "$5"),
  ],
)
def test_literals_of_json_and_python(literal, value):
  """Source: gorilla#632 and bfcl-eval's resolve_ast_by_type, which takes a bare name as text."""
  calls = python_calls(f"[f(a={literal}, b='x = y, z'), g.h(c=open('y'), class='z')]")
  assert calls[0] == {"name": "f", "arguments": {"a": value, "b": "x = y, z"}}
  assert calls[1] == {"name": "g.h", "arguments": {"c": "open('y')", "class": "z"}}


@pytest.mark.parametrize(
  "text",
  [
    '[TOOL_CALLS]f[ARGS]{"a": "x"}',  # Mistral
    '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "x"}',  # gpt-oss
    '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "x"}',  # Kimi
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": "x"}\n```',  # DeepSeek V3
    '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="true">x</｜DSML｜parameter>',
    '<x:tool_call><invoke name="f"><parameter name="a">x</parameter></invoke></x:tool_call>',
    "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",  # GLM
    "<|tool_call_start|>[f(a='x')]<|tool_call_end|>",  # LFM
    "Sure.\n```tool_code\nprint(f(a='x'))\n```",  # Gemma
    'Thought: I need it\nAction: f\nAction Input: {"a": "x"}',
    '{"function_call": {"name": "f", "arguments": {"a": "x"}}}',
    "<invoke name='f'><parameter name='a'>x</parameter></invoke>",
    '<function_calls><function name="f"><parameter name="a">x</parameter></function>',
    '<tool_call id="1" name="f"><parameter name="a">x</parameter></tool_call>',
    # gpt-oss, with the recipient in the role, or in another channel (harmony's documentation).
    '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a": "x"}<|call|>',
    '<|channel|>analysis to=functions.f code<|message|>{"a": "x"}<|call|>',
    '<function=f>{"a": "x"}<|eom_id|>',  # Llama
    """<functioncall> {"name": "f", "arguments": '{"a": "x"}'} <|endoftext|>""",  # Glaive
    "<longcat_tool_call>f\n<longcat_arg_key>a</longcat_arg_key><longcat_arg_value>x"
    "</longcat_arg_value></longcat_tool_call>",
    "Sure.\n```py\nprint(f(a='x'))\n```",
    '**Action:** f\n**Action input:** {"a": "x"}',
    '{"function_name": "f", "params": {"a": "x"}}',
    '{"tool_uses": 1, "functionCall": {"name": "f", "args": {"a": "x"}}}',
    # Words or tokens after the call, or before it.
    "<|tool_call_start|>[f(a='x')]<|tool_call_end|>I look.",  # LFM2.5's template
    "I look.<|python_start|>[f(a='x')]<|python_end|>",  # Llama 4
    '[TOOL_CALLS]f[CALL_ID]D681PevK0[ARGS]{"a": "x"}',  # Mistral v11
    '<|tools_prefix|>[{"f": {"a": "x"}}]<|tools_suffix|>',  # Apertus
    "```tool_code\nprint(default_api.f(a='x'))\n```",  # Gemini
  ],
)
def test_calls_as_models_write_them(text):
  assert list(map(call_parts, text_calls(text))) == [("f", {"a": "x"})]


@pytest.mark.parametrize(
  "thought",
  [
    "<think>{}</think>",
    "{}</think>",  # the template has opened it
    "<think>{}</think> {} </think>",
    "I answer in <tool_call> tags: {}\n</think>\n\n",
    "<thought>{}</thought>",  # EXAONE
    "<seed:think>{}</seed:think>",
    "[THINK]{}[/THINK]",  # Mistral
    "<|START_THINKING|>{}<|END_THINKING|>",  # Command
    "<|inner_prefix|>{}<|inner_suffix|>",  # Apertus
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
  ],
)
def test_calls_in_thoughts_are_none(thought):
  thought = thought.replace("{}", '{"name": "g", "arguments": {}}')
  assert text_calls(thought + "Which city?") is None
  call = '<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>'
  assert list(map(call_parts, text_calls(thought + call))) == [("f", {"a": "x"})]
  for nothing in ("[]", "[]</s>", "[]<|im_end|>\n"):
    assert written_calls(thought + nothing) == []


@pytest.mark.parametrize(
  "text",
  [
    '```json\n{"action": "Final Answer", "action_input": "Which city?"}\n```',  # LangChain
    'Action: ```json\n[{"tool_name": "directly-answer", "parameters": {}}]\n```',  # Command R
  ],
)
def test_an_answer_in_words_may_have_the_form_of_a_call(text):
  assert text_calls(text) is None


def test_all_blocks_of_code_are_read():
  blocks = "```tool_code\nf(a='x')\n```\n\n```tool_code\ng(a='y')\n```"
  assert [call["name"] for call in text_calls(blocks)] == ["f", "g"]
  assert [call["name"] for call in text_calls(f"First these:\n{blocks}")] == ["f", "g"]


def test_values_between_tags_have_no_type():
  number = '<｜DSML｜invoke name="f"><｜DSML｜parameter name="n" string="{}">5</｜DSML｜parameter>'
  (said,), (unsaid,) = (text_calls(number.replace("{}", x)) for x in ("false", "true"))
  assert (said["arguments"], unsaid["arguments"]) == ({"n": 5}, {"n": "5"})
  assert isinstance(unsaid["arguments"]["n"], Untyped)
  (of_glm,) = text_calls("<tool_call>f<arg_key>n</arg_key><arg_value>5</arg_value></tool_call>")
  assert isinstance(of_glm["arguments"]["n"], Untyped)


def test_a_tag_with_the_name_of_the_tool_has_its_arguments():
  text = '<tool_call name="f">{"a": 1}</tool_call>\n<tool_call name="g">{}</tool_call>'
  assert [call_parts(call) for call in text_calls(text)] == [("f", {"a": 1}), ("g", {})]


@pytest.mark.parametrize(
  "result",
  [
    [{"f": {"a": True}}, {"g": {}}],
    ["f(a=true)", "g()"],
    "[{'f': {'a': True}}, {'g': {}}]",
    '```json\n[{"f": {"a": true}}, {"g": {}}]\n```',
    '[{"type": "function", "function": {"name": "f", "arguments": {"a": true}}}, {"g": {}}]',
    "f(a=true); g()",
  ],
)
def test_results_of_bfcl(result):
  calls = row_answer({"result": result}, "").calls
  assert [call["name"] for call in calls] == ["f", "g"]
  assert calls[0]["arguments"] == {"a": True}


def test_what_begins_a_call_and_is_not_read_is_a_malformed_call():
  assert text_calls("<start_function_call>call:f{a:<escape>x<escape>}") == [None]
  assert text_calls("<tool_call tool='f' a='x'/>") == [None]
  assert text_calls('<TOOLCALL>[{"name": "f", "arguments": {"a": }]</TOOLCALL>') == [None]
  assert text_calls("f(a=1)\ng(b=2)") == text_calls("f(a=1); g(b=2)")
  assert len(text_calls("f(a=1)\ng(b=2)")) == 2
  assert text_calls("<tool_call>f\n</tool_call>") == [{"name": "f", "arguments": {}}]
  null = text_calls('<tool_call>{"name": "f", "arguments": null}</tool_call>')
  assert [call_parts(call) for call in null] == [("f", {})]


def ended(reason, **about):
  """A chat completion that ended so."""
  message = {"role": "assistant", "content": ""}
  return {"choices": [{"index": 0, "message": message, "finish_reason": reason, **about}]}


@pytest.mark.parametrize(
  "answer",
  [
    {"body": {"object": "response", "status": "failed", "error": {"code": "x"}, "output": []}},
    {"body": {"object": "response", "status": "cancelled", "error": None, "output": []}},
    {"response": {"status_code": 200, "body": {"error": {"message": "x"}}}},
    {"error": {"message": "overloaded"}},
    # A router's 200, after which its provider broke off; vLLM's, DeepSeek's and Zhipu's words.
    ended("error"),
    ended("abort"),
    ended("insufficient_system_resource"),
    ended("network_error"),
    ended("content_filter"),
    ended("stop", error={"code": 502, "message": "the provider went away"}),
    ended("stop", errors=[{"code": 502}]),
    ended("stop", error_message="the provider went away"),
    ended({"type": "error"}),
    ended("rate_limit_exceeded"),
    ended("server_disconnected"),
    ended("time_limit"),  # watsonx
    ended("content_moderation"),
    # Nothing, and a word that no model ends with.
    ended("bad_gateway"),
    ended("oom"),
    ended("throttled"),
    # Nothing, and nothing known of why.
    ended(None),
    ended("OTHER"),
    {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}},  # MiniMax
    {"choices": []},
    {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
    {"promptFeedback": {"blockReason": "SAFETY"}},  # Gemini
    {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"},
    {"body": {"object": "response", "status": "in_progress", "error": None, "output": []}},
    {"response": {"output": {"message": None}, "stopReason": "guardrail_intervened", "error": "x"}},
    {"result": {"type": "expired"}},
    {"response": {"object": "error", "message": "internal error", "code": 500}},  # earlier vLLM
    {"response": {"status_code": 400, "body": {"error": {"message": "too long"}}}},
    ended("refusal"),  # Anthropic's classifiers
    {"body": {"object": "response", "status": "in_progress", "output": []}},
    {"response": {"promptFeedback": {"blockReason": "SAFETY"}}},
    {"response": {"candidates": [{"finishReason": "OTHER", "index": 0}]}},
    {"candidates": [{"content": {"parts": [], "role": "model"}, "finish_reason": 3}]},
    {"response": {"error_code": 18, "error_msg": "Open api qps request limit reached"}},  # Baidu
    # bfcl_eval/_llm_response_generation.py
    {"result": "Error during inference: Error code: 429", "traceback": "Traceback ..."},
    {"result": "Error during inference: Error code: 429"},
  ],
)
def test_an_answer_that_says_it_failed_is_not_a_wrong_one(answer, corpus, tmp_path):
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  rows[2] = {"id": rows[2]["id"], **answer}
  file = write(tmp_path / "a.jsonl", rows)
  with pytest.raises(SgdxError, match=r"1 requests failed; .*line 3"):
    score(corpus, file)
  assert len(score(corpus, file, allow_missing=True).frames["original"]) == 5


@pytest.mark.parametrize("place", [2, 3])
def test_what_was_asked_again_has_not_failed(place, corpus, tmp_path):
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  rows.insert(place, {"id": rows[2]["id"], **ended("error")})
  assert len(score(corpus, write(tmp_path / "a.jsonl", rows)).frames["original"]) == 6


@pytest.mark.parametrize("place", [2, 3, 11, 128009, "Error:", "</block>", None])
def test_where_vllm_stopped_is_no_reason(place):
  """Source: vllm#2976: stop_reason is the text or the token at which an answer stopped."""
  answer = ended("stop", stop_reason=place)
  answer["choices"][0]["message"]["content"] = "I cannot."
  assert read_answer(answer, "file") == Answer([], "I cannot.")


OWN_ENDS = (  # the last two are of MCP's sampling
  "stop", "STOP", "end_turn", "eos_token", "endoftext", "COMPLETE", "normal", "length", "toolUse",
  "stopSequence",
)  # fmt: skip


@pytest.mark.parametrize("reason", OWN_ENDS)
def test_an_answer_may_be_empty(reason):
  assert read_answer(ended(reason), "file").calls == []


def test_an_error_without_content_is_none():
  answer = ended("stop", error={"code": 0, "message": ""})
  assert read_answer(answer, "file").calls == []


def test_a_text_of_opentelemetry_is_read():
  parts = [{"type": "text", "content": "f(a='x')"}]
  assert read_answer({"role": "assistant", "parts": parts}, "").call_in_text == "f(a='x')"


def test_a_call_beside_an_empty_result_is_read():
  """Source: Baidu's ERNIE; "result" with calls is BFCL's."""
  row = {"result": "", "function_call": {"name": "f", "arguments": "{}"}}
  assert row_answer(row, "").calls == [{"name": "f", "arguments": "{}"}]


def test_what_stands_beside_a_text_may_have_names():
  beside = {"tools": [{"name": "f", "parameters": {"properties": {}}}], "files": [{"name": "f"}]}
  assert read_answer({"role": "assistant", "content": "I cannot.", **beside}, "").calls == []
  # OpenAI's responses repeat the definitions that the request showed.
  tools = [{"type": "function", "name": "f", "description": "Finds", "parameters": None}]
  body = {"object": "response", "status": "completed", "output": [{"type": "reasoning"}]}
  assert read_answer({"response": {**body, "tools": tools}}, "").calls == []


@pytest.mark.parametrize("reason", [None, "unknown", "stop"])
def test_an_answer_without_a_known_reason_is_one(reason):
  answer = ended(reason)
  answer["choices"][0]["message"]["content"] = "I cannot."
  assert read_answer(answer, "file").text == "I cannot."


@pytest.mark.parametrize(
  "answer",
  [
    {"response": {"status_code": 400, "body": {"error": {"failed_generation": "<f>{"}}}},  # Groq
    {"response": {"status_code": 400, "body": {"error": {"code": "tool_use_failed"}}}},
    # OpenRouter: the provider's error as text
    {"error": {"code": 400, "metadata": {"raw": '{"error": {"failed_generation": "<f>{"}}'}}},
    {"error": "error parsing tool call: raw='{', err=unexpected end of JSON input"},  # Ollama
    {"error": "Error code: 400 - {'error': {'code': 'x', 'failed_generation': '<f>{'}}"},
    {"error": 'Model {x}: {"error": {"code": "tool_use_failed"}}'},
    {"error": "Tool error: Failed to parse generated text: EOF", "error_type": "tool_error"},  # TGI
    {"error": {"message": "The model produced invalid sequence as part of ToolUse."}},  # Bedrock
    {"candidates": [{"finishReason": "UNEXPECTED_TOOL_CALL"}]},
    ended("malformed_function_call"),  # Gemini
    ended("error", native_finish_reason="MALFORMED_FUNCTION_CALL", error={"code": 502}),
    {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]},
    {"candidates": [{"content": {"parts": [], "role": "model"}, "finish_reason": 10}]},
    # vLLM where a call is required (inference-perf#695), llama.cpp (llama.cpp#22072)
    {"error": "1 validation error for list[function-wrap[__log_extra_fields__()]]\n Invalid JSON"},
    {"error": {"code": 500, "message": "Failed to parse tool call arguments as JSON: parse error"}},
    {"response": {"output": {"message": {"role": "assistant", "content": []}}}}
    | {"stopReason": "malformed_tool_use"},
  ],
)
def test_a_call_that_the_service_could_not_parse_is_a_wrong_answer(answer, corpus, tmp_path):
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  rows[2] = {"id": rows[2]["id"], **answer}
  scored = score(corpus, write(tmp_path / "a.jsonl", rows))
  assert scored.further["calls"]["original"]["all"]["invalid_json"]["value"] == 1 / 6


@pytest.mark.parametrize(
  "answer",
  [
    ended("length"),
    ended("max_output"),  # MiniMax
    {"response": {"object": "response", "status": "incomplete", "output": [{"type": "reasoning"}]}},
    {"role": "assistant", "content": [{"type": "text", "text": "I"}], "stop_reason": "max_tokens"},
    {"response": {"message": {"role": "assistant", "content": "I"}, "done_reason": "length"}},
    {"role": "assistant", "content": {"type": "text", "text": "I"}, "stopReason": "maxTokens"},
    {"message": {"type": "ai", "content": "I", "response_metadata": {"finish_reason": "length"}}},
  ],
)
def test_answers_cut_off_are_counted(answer, corpus, tmp_path):
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  rows[2] = {"id": rows[2]["id"], **answer}
  scored = score(corpus, write(tmp_path / "a.jsonl", rows))
  assert scored.further["calls"]["original"]["all"]["cut_off"]["value"] == 1 / 6
  assert "answers cut off by a limit of tokens: 1 of 6 (original)" in scored.notes


def test_the_first_choice_is_the_one_of_the_lowest_index():
  texts = [{"index": i, "message": {"role": "assistant", "content": f"{i}"}} for i in (1, 0, 2)]
  assert (
    read_answer({"response": {"status_code": "200", "body": {"choices": texts}}}, "").text == "0"
  )


def test_thoughts_are_no_text():
  thought = {"text": '{"name": "f", "arguments": {}}', "thought": True}
  signatures = [{"thoughtSignature": "x"}, {"thought_signature": "x", "text": None}]
  parts = [thought, {"text": "Which city?"}, *signatures]
  answer = read_answer({"candidates": [{"content": {"role": "model", "parts": parts}}]}, "")
  assert (answer.calls, answer.text) == ([], "Which city?")


@pytest.mark.parametrize(
  ("answer", "words"),
  [
    ({"message": {"role": "assistant", "toolCalls": [{"toolName": "x"}]}}, "calls in toolCalls"),
    ({"role": "assistant", "content": [{"type": "server_tool_use", "name": "x"}]}, "server_tool"),
    ({"output": [{"type": "web_search_call", "status": "completed"}]}, "web_search_call"),
    ({"message": {"role": "assistant", "tool_calls": [{"title": "x"}]}}, "a call without a name"),
    ({"message": {"role": "assistant", "tool_calls": [{"name": "x", "kwargs": {}}]}}, "in kwargs"),
    ({"message": {"role": "assistant", "tool_calls": "[]"}}, "tool_calls that are no list"),
    ({"message": {"role": "user", "content": "x"}}, "a message of 'user'"),
    ({"choices": [{"index": 0, "delta": {"content": "x"}}]}, "a choice without a message"),
    ({"message": {"role": "assistant", "content": ""}, "done": False}, "streamed"),
    ({"result": [[["[f(a=1)]"]]]}, "several turns"),
    ({"role": "assistant", "items": [{"$type": "FunctionCallContent"}]}, r"of type '\$type'"),
    ({"calls": {"name": "f", "arguments": {}}}, "calls that are no list"),
    ({"calls": None}, "calls that are no list"),
    ({"message": {"role": "assistant", "actions": [{"name": "f"}]}}, "calls in actions"),
    # Beside a text.
    (
      {"message": {"role": "assistant", "content": "I", "actions": [{"name": "f", "args": {}}]}},
      "calls in actions",
    ),
    ({"role": "assistant", "content": "I", "tool_invocations": [{"f": 1}]}, "in tool_invocations"),
    (  # Snowflake
      {
        "role": "assistant",
        "content": "I",
        "content_list": [{"tool_use": {"name": "f", "input": {}}}],
      },
      "calls in content_list",
    ),
    ({"message": {"role": "assistant", "tool_calls": ["f(a=1)"]}}, "which is no object"),
    ({"message": {"role": "assistant", "function_call": "f"}}, "which is no object"),
  ],
)
def test_forms_that_are_not_read_are_named(answer, words, corpus, tmp_path):
  row = {"id": "original/test/1_00000-000-Banks_1/*", **answer}
  with pytest.raises(SgdxError, match=f"line 1: no tool calls found: .*{words}"):
    score(corpus, write(tmp_path / "a.jsonl", [row]))
