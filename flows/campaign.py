"""The campaign: plan → stage → preflight → dispatch → ingest → grade → aggregate.

Each stage is a task, or one task for each thing it makes, cached by what that thing depends on. The
store is the record: a task first looks whether its work is there already, and Prefect's cache only
spares it the look. So running a campaign again runs what is missing, whatever ended the last run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait
from prefect.runtime import flow_run
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task
from prefect.utilities.annotations import quote

from skilltrial.data.errors import AttemptUnsettled, CampaignStopped
from skilltrial.data.outcomes import policy
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.spec import CampaignSpec
from skilltrial.data.store import CampaignFolder, Store
from skilltrial.descriptors.model import of_plan
from skilltrial.flows import observing
from skilltrial.tasks.analysis.task import aggregate
from skilltrial.tasks.dispatch.brake import Brake
from skilltrial.tasks.dispatch.marks import campaign_mark
from skilltrial.tasks.dispatch.process import end_all
from skilltrial.tasks.dispatch.sweep import sweep
from skilltrial.tasks.dispatch.task import dispatch
from skilltrial.tasks.dispatch.tidying import remove_abandoned
from skilltrial.tasks.grading.grade import is_graded
from skilltrial.tasks.grading.task import grade
from skilltrial.tasks.ingest.fragments import is_ingested
from skilltrial.tasks.ingest.task import ingest
from skilltrial.tasks.planning.conditions import campaign_name
from skilltrial.tasks.planning.task import plan_campaign
from skilltrial.tasks.preflight.task import preflight
from skilltrial.tasks.staging.task import stage_template
from skilltrial.tasks.staging.template import template_record

T = TypeVar("T")
Pool = ThreadPoolTaskRunner[Any]

_NOTICE_S: Final = 0.2
"""How long a Ctrl-C may go unnoticed while the flow waits."""


def _flow_run_name() -> str:
    return f"campaign {campaign_name(flow_run.parameters['spec'])}"


@flow(name="campaign", flow_run_name=_flow_run_name)
def campaign(spec: CampaignSpec, home: Path | None = None, cells: tuple[str, ...] | None = None) -> State[Any]:
    """Run a campaign, or what is missing of it.

    `home` is the store's (default: `Store.open`); `cells`, labels of the only cells to dispatch (default: all).
    Completed when every cell is settled, failed when some are not: run it again to try those.
    """
    store, observer = Store.open(home), observing.current()
    folder = store.campaign(campaign_name(spec))
    brake = Brake(paused=observer.paused)
    with folder.locked(), Pool(max_workers=spec.jobs) as pool, _nothing_outlives_the_flow(folder, store, brake):
        observer.stage("plan")
        plan = plan_campaign(spec, store)
        observer.planned(plan, [record for _, record in folder.settled(plan)])
        observer.stage("stage")
        _stage(pool, plan, folder)
        observer.stage("preflight")
        observer.warned([*plan.warnings, *preflight(_whole(plan), store)])
        observer.stage("dispatch")
        _dispatch(pool, _chosen(plan, cells), plan, store, brake, observer)
        observer.stage("ingest")
        _ingest(pool, plan, folder)
        observer.stage("grade")
        _grade(pool, plan, folder)
        observer.stage("aggregate")
        aggregate(_whole(plan), store)
    unsettled = len(plan.cells) - len(folder.settled(plan))
    message = f"{len(plan.cells) - unsettled} of {len(plan.cells)} cells are settled"
    data = {"campaign": plan.campaign, "unsettled": unsettled}
    return Failed(message=message, data=data) if unsettled else Completed(message=message, data=data)


def _stage(pool: Pool, plan: CampaignPlan, folder: CampaignFolder) -> None:
    task = _if_stored(stage_template, folder)
    futures = []
    for template in plan.templates:
        stands = template_record(folder.template(template.eval_id, template.condition))
        stored = stands is not None and stands.digest == template.digest
        futures.append(pool.submit(task[stored], {"plan": _whole(plan), "template": template, "folder": folder}))
    _results(futures)


def _chosen(plan: CampaignPlan, labels: tuple[str, ...] | None) -> list[Cell]:
    return [cell for cell in plan.cells if labels is None or cell.label in labels]


def _dispatch(
    pool: Pool, cells: list[Cell], plan: CampaignPlan, store: Store, brake: Brake, observer: observing.Observer
) -> None:
    """The cells in their order; one that stays unsettled is told by what the store lacks, not by an error."""
    folder = store.campaign(plan.campaign)
    task = _if_stored(dispatch, folder, retries=plan.spec.attempts - 1)
    shared = {"plan": _whole(plan), "store": store, "brake": _whole(brake)}
    shared |= {"started": _whole(observer.started), "finished": _whole(observer.finished)}
    settled = {cell.label for cell, _ in folder.settled(plan)}
    futures = [pool.submit(task[cell.label in settled], {**shared, "cell": cell}) for cell in cells]
    _results(futures, expected=(AttemptUnsettled, CampaignStopped))


def _ingest(pool: Pool, plan: CampaignPlan, folder: CampaignFolder) -> None:
    task, descriptor = _if_stored(ingest, folder), of_plan(plan)
    futures = []
    for cell, record in folder.newest(plan):
        attempt = folder.cell(cell).attempt(record.attempt)
        arguments = {"record": record, "attempt": attempt, "descriptor": _whole(descriptor)}
        futures.append(pool.submit(task[is_ingested(attempt, record, descriptor)], arguments))
    _results(futures)


def _grade(pool: Pool, plan: CampaignPlan, folder: CampaignFolder) -> None:
    task = _if_stored(grade, folder)
    futures = []
    for cell, record in folder.newest(plan):
        if not policy(record.outcome).graded:
            continue
        attempt = folder.cell(cell).attempt(record.attempt)
        arguments = {"plan": _whole(plan), "cell": cell, "record": record, "folder": folder, "attempt": attempt}
        futures.append(pool.submit(task[is_graded(plan, cell, attempt)], arguments))
    _results(futures)


def _whole(value: T) -> T:
    """The value for a task's argument that Prefect shall hand over as it is, without walking through it."""
    return cast("T", quote(value))


def _if_stored(task: Task[..., Any], folder: CampaignFolder, **options: Any) -> dict[bool, Task[..., Any]]:
    """The task for work that the store holds (true), and for work that it lacks: its cache is not believed then."""
    known = task.with_options(result_storage=folder.cache, **options)
    return {True: known, False: known.with_options(refresh_cache=True)}


def _results(futures: Sequence[PrefectFuture[Any]], expected: tuple[type[Exception], ...] = ()) -> None:
    """Wait for all, then raise the first failure that is not of an expected kind."""
    _wait(futures)
    for future in futures:
        error = future.state.result(raise_on_failure=False)
        if isinstance(error, BaseException) and not isinstance(error, expected):
            raise error


def _wait(futures: Sequence[PrefectFuture[Any]]) -> None:
    """Wait for all, and notice a Ctrl-C meanwhile.

    Waiting without a limit would not: polars takes SIGINT over with its first query, such that blocking calls
    go on after it (polars 2.1.0, measured).
    """
    ended = threading.Semaphore(0)
    for future in futures:
        future.add_done_callback(lambda _: ended.release())
    for _ in futures:
        while not ended.acquire(timeout=_NOTICE_S):
            pass
    wait(list(futures))


@contextlib.contextmanager
def _nothing_outlives_the_flow(folder: CampaignFolder, store: Store, brake: Brake) -> Iterator[None]:
    """End what a killed run left behind; and when this one is interrupted, end its agents so that threads return."""
    sweep(campaign_mark(folder.root))
    remove_abandoned(folder, store)
    try:
        yield
    finally:
        brake.stop()
        end_all()
