"""What `sgdx` says about a command line before any command runs."""

import pytest
from commands import assert_four_parts

from sgdx_t5x.cli import main


@pytest.mark.parametrize(
  ("words", "command", "option", "nearest"),
  [
    ("score --corpus sample --predictoins x", "score", "--predictoins", "nearest: --predictions"),
    ("data prepare --dialogs test=3 --data-dir d", "data prepare", "--dialogs", "--dialogues"),
    ("ls tasks --modul=x --patern", "ls", "--patern", ""),  # options may be abbreviated
    ("--debog score", "", "--debog", "nearest: --debug"),
  ],
)
def test_an_unknown_option_is_named_with_the_commands_usage(
  words, command, option, nearest, capsys
):
  assert main(words.split()) == 2
  error = capsys.readouterr().err
  prog = " ".join(filter(None, ("sgdx", command)))
  assert error.startswith(f"usage: {prog} ")
  assert_four_parts(error, f"{prog} has no option {option}", nearest)


def test_values_that_look_like_options_follow_two_dashes(capsys):
  with pytest.raises(SystemExit):
    main(["diff", "--", "--a"])  # B is missing
  assert "required: B" in capsys.readouterr().err


def test_a_command_that_there_is_not_is_named_before_its_options(capsys):
  assert main(["data", "prepair", "--corpus", "sample"]) == 2
  error = capsys.readouterr().err
  assert "has no command prepair" in error
  assert "nearest: prepare" in error


@pytest.mark.parametrize("words", ["-h", "data -h", "score -h"])
def test_help_has_a_letter(words, capsys):
  """Regression: `sgdx -h` and `sgdx data -h` were refused as commands that there are not."""
  with pytest.raises(SystemExit) as e:
    main(words.split())
  assert e.value.code == 0
  assert "examples:" in capsys.readouterr().out
