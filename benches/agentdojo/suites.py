"""The suites of AgentDojo: tasks, tools and environments, without its agents."""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
import warnings
from typing import Any

VERSION = "v1.2.2"
NAMES = ["workspace", "travel", "banking", "slack"]


def _load() -> Any:
    """Imports AgentDojo's suites without its agents, which need the clients of all model vendors."""
    spec = importlib.util.find_spec("agentdojo")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("agentdojo is not installed: pip install --no-deps -r requirements.txt")
    agents = types.ModuleType("agentdojo.agent_pipeline")
    agents.__path__ = [spec.submodule_search_locations[0] + "/agent_pipeline"]
    sys.modules[agents.__name__] = agents
    ground_truth = types.ModuleType("agentdojo.agent_pipeline.ground_truth_pipeline")
    ground_truth.GroundTruthPipeline = object  # type: ignore[attr-defined]
    sys.modules[ground_truth.__name__] = ground_truth
    warnings.simplefilter("ignore")
    from agentdojo.task_suite.load_suites import get_suites

    return get_suites(VERSION)


SUITES = _load()

from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402

Call = tuple[str, dict[str, Any]]


def number(name: str) -> int:
    """The number in the name of a task, by which tasks are sorted."""
    return int(name.rsplit("_", 1)[1])


def user_tasks(suite: str) -> dict[str, Any]:
    return dict(sorted(SUITES[suite].user_tasks.items(), key=lambda item: number(item[0])))


def injection_tasks(suite: str) -> dict[str, Any]:
    return dict(sorted(SUITES[suite].injection_tasks.items(), key=lambda item: number(item[0])))


@functools.lru_cache(maxsize=8)
def _environment(suite: str, user_task: str | None, injections: tuple[tuple[str, str], ...]) -> Any:
    made = SUITES[suite].load_and_inject_default_environment(dict(injections))
    return SUITES[suite].user_tasks[user_task].init_environment(made) if user_task else made


def environment(suite: str, user_task: str | None, injections: dict[str, str]) -> Any:
    """The environment at the start of a user task, with the injections in place of the placeholders."""
    return _environment(suite, user_task, tuple(injections.items())).model_copy(deep=True)


def ground_truth(task: Any, env: Any) -> list[Call]:
    """The calls that solve a task, as names of tools and arguments."""
    return [(call.function, dict(call.args)) for call in task.ground_truth(env)]


def runtime(suite: str) -> FunctionsRuntime:
    return FunctionsRuntime(SUITES[suite].tools)


def plain(value: Any) -> Any:
    """A result of a tool as JSON data."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def replay(suite: str, user_task: str | None, injections: dict[str, str], calls: list[Call]) -> tuple[Any, Any]:
    """The environments before and after the calls that the server has made."""
    before = environment(suite, user_task, injections)
    after = environment(suite, user_task, injections)
    tools = runtime(suite)
    for name, arguments in calls:
        tools.run_function(after, name, arguments)
    return before, after


def achieved(suite: str, task: Any, output: str, user_task: str | None, injections: dict[str, str],
             calls: list[Call]) -> bool:
    """Whether AgentDojo's own check says that the calls solve a user task or achieve an injection's goal."""
    before, after = replay(suite, user_task, injections, calls)
    traces = [FunctionCall(function=name, args=arguments) for name, arguments in calls]
    kind = "security" if hasattr(task, "GOAL") else "utility"
    try:
        of_traces = getattr(task, kind + "_from_traces")(output, before, after, traces)
        return bool(getattr(task, kind)(output, before, after) if of_traces is None else of_traces)
    except Exception:  # a check may fail on an environment that it does not expect
        return False


@functools.cache
def candidates(suite: str, user_task: str) -> tuple[str, ...]:
    """The placeholders whose text a tool returns during the ground truth of a user task."""
    canaries = {name: f"<CANARY-{name}->" for name in SUITES[suite].get_injection_vector_defaults()}
    env = environment(suite, user_task, canaries)
    tools = runtime(suite)
    results = [str(plain(tools.run_function(env, name, arguments)[0]))
               for name, arguments in ground_truth(SUITES[suite].user_tasks[user_task], env)]
    return tuple(name for name, canary in canaries.items() if any(canary in result for result in results))
