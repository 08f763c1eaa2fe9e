"""The benchmark of whole campaigns."""

from __future__ import annotations

import polars as pl
import pytest

from skilltrial.data.benchmark import Benchmark
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import PlannedCodebase, Provenance
from skilltrial.data.store import Store, read_model, write_model
from skilltrial.tasks.analysis.benchmark import build, figure, share
from skilltrial.tasks.analysis.compaction import compact
from skilltrial.tasks.analysis.tables import NoTables
from tests.analysis.trials import CONTROL, SKILL, START, TREATMENT, Trial, eight_evals, make_plan, skill


def benchmark_of(trial: Trial) -> Benchmark:
    compact(trial.plan, trial.store)
    return build(trial.plan, trial.store, now=START)


def test_the_worked_example_from_records_to_verdict(store: Store) -> None:
    benchmark = benchmark_of(eight_evals(store))
    (contrast,) = benchmark.contrasts
    assert contrast.effect == pytest.approx(0.3, abs=1e-12)
    assert contrast.sd == pytest.approx(0.2618614683, abs=1e-10)
    assert contrast.se == pytest.approx(0.0925820100, abs=1e-10)
    assert contrast.run_weighted == pytest.approx(0.3)
    assert (contrast.n_evals, contrast.n_untied) == (8, 5)
    assert (contrast.p_sign_flip, contrast.p_sign, contrast.p_holm) == (0.0625, 0.0625, 0.0625)
    assert (contrast.floor, contrast.possible_floor) == (0.0625, 0.0078125)
    assert contrast.verdict == "underpowered"
    assert contrast.unavailable == {}
    assert [round(e.difference or 0.0, 9) for e in contrast.evals] == [0.4, 0, 0.4, 0.6, 0, 0.4, 0.6, 0]
    assert {(e.n_t, e.n_c) for e in contrast.evals} == {(5, 5)}


def test_six_evals_that_all_improve_are_improved(store: Store) -> None:
    trial = Trial(make_plan(evals=[f"e{n}" for n in range(6)], repetitions=1), store)
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    (contrast,) = benchmark_of(trial).contrasts
    assert (contrast.verdict, contrast.effect, contrast.sd, contrast.p_sign_flip) == ("improved", 0.5, 0.0, 0.03125)


def test_the_same_campaign_with_swapped_arms_is_regressed(store: Store) -> None:
    plan = make_plan(evals=[f"e{n}" for n in range(6)], repetitions=1, contrasts=[(CONTROL, TREATMENT)])
    trial = Trial(plan, store)
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    (contrast,) = benchmark_of(trial).contrasts
    assert (contrast.verdict, contrast.effect) == ("regressed", -0.5)


def test_p_values_of_several_contrasts_are_adjusted_for_one_another(store: Store) -> None:
    arms = {TREATMENT: [skill()], CONTROL: [], "third": []}
    plan = make_plan(
        evals=[f"e{n}" for n in range(6)],
        repetitions=1,
        conditions=arms,
        contrasts=[(TREATMENT, CONTROL), (TREATMENT, "third")],
    )
    trial = Trial(plan, store)
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    for contrast in benchmark_of(trial).contrasts:
        assert (contrast.p_sign_flip, contrast.p_holm, contrast.verdict) == (0.03125, 0.0625, "inconclusive")


def test_an_arm_without_a_score_gives_nulls_with_reasons_and_no_number(trial: Trial) -> None:
    for cell in trial.plan.cells:
        if cell.condition == TREATMENT:
            trial.run(cell, [True, True])
        else:
            trial.attempt(cell, Outcome.CLI_CRASH)
    benchmark = benchmark_of(trial)
    (contrast,) = benchmark.contrasts
    nulls = ("effect", "se", "sd", "run_weighted", "p_sign_flip", "sign_flip_method", "p_sign", "p_holm", "floor")
    assert {name: getattr(contrast, name) for name in nulls} == dict.fromkeys(nulls)
    assert contrast.unavailable == dict.fromkeys(nulls, "no eval has a score in both arms")
    assert (contrast.verdict, contrast.reason) == (
        "invalid",
        "the arms cannot be compared: no cell of without_skill has a score",
    )
    assert (contrast.missing.lowest, contrast.missing.highest) == (0.0, 1.0)
    assert benchmark.cells.excluded == {"cli_crash": 4}


def test_a_campaign_without_any_attempt_has_a_benchmark(trial: Trial) -> None:
    benchmark = benchmark_of(trial)
    assert benchmark.contrasts[0].verdict == "invalid"
    assert benchmark.cells.model_dump() == {
        "planned": 8,
        "settled": 0,
        "unsettled": 8,
        "not_dispatched": 8,
        "scored": 0,
        "with_score": 0,
        "excluded": {},
    }
    assert (benchmark.totals.cost_usd, benchmark.totals.attempts) == (None, 0)


def test_a_campaign_without_assertions_is_not_a_tie(store: Store) -> None:
    trial = Trial(make_plan(evals=[], ungraded=["free"]), store)
    trial.run_all(lambda _: [])
    (contrast,) = benchmark_of(trial).contrasts
    assert (contrast.verdict, contrast.effect, contrast.evals) == ("invalid", None, ())
    assert contrast.reason == "the arms cannot be compared: no eval has an assertion, so that nothing is scored"


def test_one_eval_has_an_effect_only(store: Store) -> None:
    trial = Trial(make_plan(evals=["alpha"]), store)
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    (contrast,) = benchmark_of(trial).contrasts
    assert (contrast.effect, contrast.sd, contrast.se, contrast.verdict) == (0.5, None, None, "underpowered")
    assert set(contrast.unavailable) == {"sd", "se"}


def test_equal_treatments_are_recognised_as_a_noise_control(store: Store) -> None:
    plan = make_plan(conditions={"a": [skill()], "b": [skill()]}, contrasts=[("a", "b")])
    trial = Trial(plan, store, skills={"a": [SKILL], "b": [SKILL]})
    trial.run_all(lambda _: [True, True])
    assert benchmark_of(trial).contrasts[0].same_treatment is True


def test_counts_and_totals_include_superseded_attempts(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    trial.attempt(cell, Outcome.RATE_LIMITED, duration_ms=250, cost_usd=0.25)
    trial.run(cell, [True, True])
    trial.attempt(trial.cell("alpha", CONTROL), Outcome.NETWORK)
    benchmark = benchmark_of(trial)
    assert benchmark.cells.model_dump() == {
        "planned": 8,
        "settled": 1,
        "unsettled": 7,
        "not_dispatched": 6,
        "scored": 1,
        "with_score": 1,
        "excluded": {"network": 1},
    }
    assert benchmark.totals.model_dump() == {
        "cost_usd": 0.75,
        "cost_unknown": 1,
        "duration_ms": 2250,
        "attempts": 3,
        "dispatches": 3,
    }


def test_assertions_are_counted_by_condition_with_their_signal(trial: Trial) -> None:
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT if cell.eval_id == "alpha" else None])
    rollup = {(a.eval_id, a.assertion_id): a for a in benchmark_of(trial).assertions}
    assert {key: found.signal for key, found in rollup.items()} == {
        ("alpha", "a1"): "always_passes",
        ("alpha", "a2"): "varies",
        ("beta", "a1"): "always_passes",
        ("beta", "a2"): None,
    }
    counts = rollup["alpha", "a2"].conditions
    assert counts[TREATMENT].model_dump() == {"passed": 2, "graded": 2, "missing": 0}
    assert counts[CONTROL].model_dump() == {"passed": 0, "graded": 2, "missing": 0}
    assert rollup["beta", "a2"].conditions[TREATMENT].model_dump() == {"passed": 0, "graded": 0, "missing": 2}


def test_an_assertion_that_fails_everywhere_says_so(trial: Trial) -> None:
    trial.run_all(lambda _: [False, True])
    assert [a.signal for a in benchmark_of(trial).assertions][:2] == ["always_fails", "always_passes"]


def test_conditions_are_summed_up_over_scored_cells(trial: Trial) -> None:
    durations = iter((1000, 2000, 6000))
    for repetition, eval_id in ((1, "alpha"), (2, "alpha"), (1, "beta")):
        trial.run(trial.cell(eval_id, TREATMENT, repetition), [True, eval_id == "alpha"], duration_ms=next(durations))
    trial.attempt(trial.cell("beta", TREATMENT, 2), Outcome.HUNG, duration_ms=999_999)
    arm = benchmark_of(trial).conditions[0]
    assert (arm.condition, arm.planned, arm.scored, arm.with_score) == (TREATMENT, 4, 3, 3)
    assert arm.outcomes == {"completed": 3, "hung": 1}
    assert arm.mean_of_evals == 0.75  # of 1.0 and 0.5, though alpha has two cells
    assert arm.duration_ms.model_dump() == {"n": 3, "mean": 3000.0, "sd": 7_000_000**0.5, "median": 2000.0}
    assert arm.skill_listed.model_dump() == {"known": 3, "true": 3, "share": 1.0}
    assert [one.slug for one in arm.skills] == [SKILL]


def test_figures_of_few_values_are_null_and_not_zero() -> None:
    assert figure(pl.Series([None], dtype=pl.Int64)).model_dump() == {"n": 0, "mean": None, "sd": None, "median": None}
    assert figure(pl.Series([3])).model_dump() == {"n": 1, "mean": 3.0, "sd": None, "median": 3.0}
    assert share(pl.Series([None], dtype=pl.Boolean)).model_dump() == {"known": 0, "true": 0, "share": None}
    assert share(pl.Series([True, False, None])).share == 0.5


def test_the_codebase_is_named_with_its_evals(trial: Trial) -> None:
    where = Provenance(kind="git", path="/code", revision="abc")
    codebase = PlannedCodebase(key="abc", revision="abc", branch="main", provenance=where)
    evals = tuple(planned.model_copy(update={"codebase": codebase}) for planned in trial.plan.evals)
    trial.plan = trial.plan.model_copy(update={"evals": evals})
    (found,) = benchmark_of(trial).codebases
    assert (found.key, found.evals, found.provenance) == ("abc", ("alpha", "beta"), where)


def test_a_benchmark_survives_being_written_and_read(trial: Trial) -> None:
    trial.run_all(lambda cell: [True, cell.repetition == 1])
    benchmark = benchmark_of(trial)
    path = trial.store.campaign("trial").benchmark_path
    write_model(path, benchmark)
    assert read_model(path, Benchmark) == benchmark
    assert benchmark.tables["cells"] == "tables/cells/campaign=trial"
    assert (trial.store.home / benchmark.tables["cells"] / "part-0.parquet").is_file()


def test_building_before_compacting_says_what_is_missing(trial: Trial) -> None:
    with pytest.raises(NoTables, match="there is no table cells of campaign 'trial'"):
        build(trial.plan, trial.store, now=START)
