"""Bounds of an effect when cells are missing."""

from __future__ import annotations

from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.analysis.missing import missing_bounds
from tests.analysis.trials import CONTROL, TREATMENT, Trial, cell_rows


def bounds(trial: Trial) -> dict[str, object]:
    cells = cell_rows(trial.plan, trial.store)
    return missing_bounds(trial.plan.cells, cells, TREATMENT, CONTROL, ["alpha", "beta"]).model_dump()


def test_without_missing_cells_every_bound_is_the_effect(trial: Trial) -> None:
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    assert bounds(trial) == {
        "missing_t": 0,
        "missing_c": 0,
        "reasons_t": {},
        "reasons_c": {},
        "all_failing": 0.5,
        "all_passing": 0.5,
        "lowest": 0.5,
        "highest": 0.5,
    }


def test_missing_cells_are_counted_by_reason_and_filled_with_the_worst_and_the_best(trial: Trial) -> None:
    for eval_id in ("alpha", "beta"):
        trial.run(trial.cell(eval_id, TREATMENT, 1), [True, True])
        trial.run(trial.cell(eval_id, CONTROL, 1), [False, False])
    trial.attempt(trial.cell("alpha", TREATMENT, 2), Outcome.NETWORK)
    trial.run(trial.cell("beta", TREATMENT, 2), [None, None])
    trial.run(trial.cell("beta", CONTROL, 2), [True, True])
    # alpha: treatment 1 of 2 known (1), control 1 of 2 known (0); beta: treatment 1 of 2 (1), control 0.5
    assert bounds(trial) == {
        "missing_t": 2,
        "missing_c": 1,
        "reasons_t": {"network": 1, "no_verdict": 1},
        "reasons_c": {"not_dispatched": 1},
        "all_failing": ((0.5 - 0) + (0.5 - 0.5)) / 2,
        "all_passing": ((1 - 0.5) + (1 - 0.5)) / 2,
        "lowest": ((0.5 - 0.5) + (0.5 - 0.5)) / 2,
        "highest": ((1 - 0) + (1 - 0.5)) / 2,
    }


def test_an_empty_campaign_is_bounded_by_minus_one_and_one(trial: Trial) -> None:
    found = bounds(trial)
    assert (found["lowest"], found["highest"]) == (-1.0, 1.0)
    assert (found["all_failing"], found["all_passing"]) == (0.0, 0.0)
    assert found["reasons_t"] == {"not_dispatched": 4}
