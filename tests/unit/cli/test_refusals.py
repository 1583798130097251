"""What no command does: an exit code and one message that says why."""

import shlex

import pytest

from tests.conftest import Toolkit

PLAN = "--recipe qwen3.5-2b --dry-run"
REFUSED = r"""
2 | no rule 'H9' | decide H2a H9
2 | has no rule 'H6' | decide H6 --study embedded
2 | has no rule 'H6' | explain H6 --study embedded
2 | name the rules to decide | decide
2 | name the rules to decide | decide H2a --all
2 | no study 'nobody' | decide H2a --study nobody
2 | no study | decide H2a --study /nowhere/at/all
3 | was not pulled before | decide H2a --study owner/name@abc
2 | has no runs | decide H2a --study task-pools
2 | has no runs | explain H2a --study task-pools
2 | name the rules to explain | explain
2 | no table 'diary' | registers schema diary
2 | no study 'nobody' | registers verify --study nobody
3 | cannot be read | registers build published --source /nowhere
2 | no registration 'nobody' | verify-prereg nobody
2 | DuckDB refused the query | sql SELECT
2 | exclude each other | sql 'FROM runs' --csv --json
2 | exclude each other | sql 'FROM runs' --csv --parquet /nowhere/x
3 | its folder is missing | sql 'FROM runs' --parquet /nowhere/x
2 | two columns have one name | sql 'SELECT 1 AS a, 2 AS a' --json
3 | no site is here | site check --folder /nowhere
2 | No such command | nothing
2 | No such option | decide --nothing
2 | validation:999 | pools show validation:999
2 | has no task pools | pools verify --study published
3 | regime | study status paired-rollouts

2 | 'xml' | backoffice schema --format xml
2 | --task | backoffice mcp
2 | no pool 'nowhere' | backoffice mcp --task nowhere:0
2 | 'loud' | backoffice mcp --task validation:0 --regime loud
2 | -1 | backoffice mcp --task validation:0 --schedule -1
2 | 18446744073709551616 | backoffice mcp --task validation:0 --schedule 18446744073709551616

2 | Missing argument | draw
2 | Missing argument | draw 0
2 | an event key has | draw 0 get_order
2 | an event key has | draw 0 get_order O-1
2 | an event key has | draw 0 grader O-1
2 | No such option | draw -1 grader
2 | a seed lies in | draw 18446744073709551616 grader
2 | is no whole number | draw x grader
2 | is no whole number | draw 1_000 grader
2 | No such option | draw 0 get_order O-1 -1
2 | No such option | draw 0 --nope x 0
2 | REPEAT | draw 0 get_order O-1 x
2 | REPEAT | draw 0 get_order O-1 18446744073709551616

2 | no pool 'nowhere' | episode play --task nowhere:0
2 | validation:300 | episode play --task validation:300
2 | validation | episode play --task validation
2 | validation:00 | episode play --task validation:00
2 | no regime 'windy' | episode play --regime windy
2 | --schedule | episode play --schedule -1
2 | --schedule | episode play --schedule x
2 | a seed lies in | episode play --seed 18446744073709551616
2 | is no whole number | episode play --seed 0xzz
2 | is no whole number | episode play --seed 1_000
2 | is no whole number | episode play --seed ' 12'
2 | is no whole number | episode play --seed ٣
2 | --agent | episode play --agent genius
2 | exclude each other | episode play --seed 1 --schedule 0
2 | exclude each other | episode play --by-hand --agent careless

2 | no regime 'dirty' | evaluate --model reference --sets clean,dirty
2 | no scripted agent 'nobody' | evaluate --model nobody --engine scripted
2 | an endpoint has an address | evaluate --model m --engine endpoint
2 | not the address of a server | evaluate --model m --endpoint localhost:8000
2 | no use for --revision | evaluate --model m --endpoint http://h/v1 --revision main
2 | no use for --api-key-env | evaluate --model reference --api-key-env X
2 | no use for --request-option | evaluate --model reference --request-option top_k=1
2 | no use for --endpoint | evaluate --model m --engine vllm --endpoint http://h/v1
2 | an option is NAME=JSON | evaluate --model m --chat-option thinking
2 | value of an option | evaluate --model m --chat-option a={}
2 | --tasks | evaluate --model reference --tasks 0
2 | --tasks | evaluate --model reference --tasks 301
2 | --temperature | evaluate --model reference --temperature -1
2 | --model | evaluate

2 | no rule 'H9' | power H9
2 | H1a | power H1a
2 | H4 | power H4
2 | P8 | power P8
2 | two seeds | power H2a --seeds 1
2 | with this effect | power H2a --effect 2
2 | is no number | power H2a --effect nan
2 | is no number | power H2a --seed-sd nan
2 | is no number | power H2a --task-sd nan
2 | is no number | power H2a --target nan
2 | effect | power H2a --effect 0.9
2 | effect | power H5 --effect 0.3
2 | --simulations | power H2a --simulations 5
2 | task-pools | power H2a --study task-pools
2 | nowhere | power H2a --study nowhere

3 | ships no evidence | probe report --study published --check
3 | has no probe | probe report --study task-pools
2 | no checkpoint of the probe is meant | probe report --study embedded --trajectory 'c9-*'
2 | nothing | probe report --study nothing
3 | registers no probe | probe run published
2 | has no runs | probe run task-pools
2 | writes nothing | probe run embedded --check --into elsewhere

2 | --flip-rate | theory spurious
2 | a rate lies in | theory spurious --flip-rate 2
2 | is no number | theory spurious --flip-rate x
2 | at most 30 characters | theory spurious --flip-rate 9999999999999999999999999999999
2 | is no number | theory spurious --flip-rate 1/0
2 | --group-size | theory bandit --flip-rate 0.1 --group-size 1
2 | logit | theory bandit --flip-rate 0.1 --logit nan
2 | --successes | theory condition
2 | 0 <= k <= G | theory condition --successes 9
2 | --successes | theory condition --successes 1 --scores x.json
2 | --silent | theory condition --silent --scores README.md
2 | a rate lies in | theory luck --share 1.5
2 | positive and finite | theory equal-variance --ratio 0
2 | --batch | theory drift --flip-rate 0.1 --batch 0

2 | say whose runs are meant | train --recipe qwen3.5-2b --run c2-paired-s0
2 | not what is registered | train PLAN --set step.steps=10 --set step.checkpoint_every=5
2 | lora.rank is too small | train PLAN --set lora.rank=0
2 | no run that can be played | train PLAN --run 'c9-*'
3 | names the regime | train PLAN --study paired-rollouts
2 | no registration | train PLAN --study nothing
2 | not both | train PLAN --seconds-per-step 1 --tokens-per-second 1
2 | --gpus | train PLAN --gpus 0
2 | --seconds-per-step | train PLAN --seconds-per-step -1
"""


@pytest.mark.parametrize("line", [line for line in REFUSED.splitlines() if line])
def test_a_refusal_is_said_once_with_its_exit_code(toolkit: Toolkit, line: str) -> None:
    code, says, command = line.split(" | ")
    toolkit(*shlex.split(command.replace("PLAN", PLAN))).refused(int(code), says)


@pytest.mark.parametrize("name", ["x" * 201, "\udcff"])
def test_a_name_that_is_too_long_or_no_text_is_refused(toolkit: Toolkit, name: str) -> None:
    toolkit("draw", 0, "get_order", name, 0).refused(2, "a name")
