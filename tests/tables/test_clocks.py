"""Local times where clocks change: told where they are, with the option that counts them in UTC, and nowhere else."""

import shlex

import numpy as np
import pandas as pd
import pytest

from ardea.cli import main
from ardea.tables.dates import localized, set_forward
from ardea.tables.series import Choice, read_series, set_back

HOUR = np.timedelta64(1, "h")


def local_times(zone, begin, steps, unit="min"):
    """Times of a logger whose clock shows local time, steps apart in truth."""
    t = pd.Timestamp(begin, tz=zone).tz_convert("UTC") + pd.to_timedelta(np.cumsum([0, *steps]), unit)
    return t.tz_localize(None).to_numpy(), t.tz_convert(zone).tz_localize(None).to_numpy()


CHANGES = [
    ("Europe/Berlin", "2024-10-25 00:00", "2024-03-29 00:00"),
    ("Europe/London", "2023-10-27 12:00", "2023-03-24 06:00"),
    ("America/New_York", "2024-11-01 12:00", "2024-03-08 12:00"),
    ("Australia/Sydney", "2024-04-05 12:00", "2024-10-04 12:00"),
]


@pytest.mark.parametrize(("zone", "autumn", "spring"), CHANGES)
@pytest.mark.parametrize("step", [10, 60])
def test_local_times_are_counted_in_utc_where_clocks_change(zone, autumn, spring, step):
    for begin in (autumn, spring):
        utc, local = local_times(zone, begin, [step] * (72 * 60 // step))
        np.testing.assert_array_equal(localized(local, zone), utc)
        np.testing.assert_array_equal(localized(local[::-1], zone), utc[::-1])
    assert set_back(local_times(zone, autumn, [step] * (72 * 60 // step))[1]) is not None
    found = set_forward(local)
    assert found is not None
    np.testing.assert_array_equal(np.diff(local)[found[1] - 1], HOUR + np.timedelta64(step, "m"))


def sound(rng):
    """Dated series that tell no change of clocks, each over one."""
    n, day = 400, np.datetime64("2024-03-28T00:00", "us")
    minute = np.timedelta64(1, "m")
    yield "UTC, hourly", day + np.arange(n) * HOUR
    yield "UTC, uneven", day + np.cumsum(rng.integers(5, 15, n)) * minute
    yield "days", day + np.arange(n) * np.timedelta64(1, "D")
    yield "half days", day + np.arange(n) * np.timedelta64(12, "h")
    yield "weeks", day + np.arange(n) * np.timedelta64(7, "D")
    yield "rows lost at random", np.delete(day + np.arange(n) * HOUR, rng.choice(n, 20, replace=False))
    yield "one long gap", np.delete(day + np.arange(n) * 10 * minute, slice(100, 140))
    yield "shifts with nights off", np.concatenate([day + (k * 24 + 8 + np.arange(9)) * HOUR for k in range(30)])
    yield "exponential steps", day + np.cumsum(rng.exponential(45, n)).astype(int) * minute + np.arange(n)
    yield "seconds", day + np.arange(n) * np.timedelta64(1, "s")
    yield "summer alone", np.datetime64("2024-06-01T00:00", "us") + np.arange(n) * HOUR
    yield "readings by hand", day + np.cumsum(rng.integers(6 * 60, 30 * 60, n)) * minute


@pytest.mark.parametrize("seed", range(210, 220))
def test_no_change_of_clocks_is_told_where_there_is_none(seed):
    for name, times in sound(np.random.default_rng(seed)):
        assert set_forward(times) is None, name
        assert set_back(times[rng_order(times, seed)]) is None, name  # two runs, one below the other


def rng_order(times, seed):
    """Rows from a place in the middle on, then those before."""
    return np.roll(np.arange(times.size), np.random.default_rng(seed).integers(5, times.size - 5))


def decay(t, local, path, steps):
    """Write a file of a decay of one unit a day; `t` are the times in truth, `local` those of the clock."""
    x = 5 * np.exp(-(t - t[0]) / np.timedelta64(24, "h")) + 0.01 * np.random.default_rng(0).normal(size=t.size)
    pd.DataFrame({"time": pd.Series(local).dt.strftime("%Y-%m-%d %H:%M"), "x": x}).to_csv(path, index=False)


def test_an_hour_that_comes_twice_is_named_and_the_command_offered_works(tmp_path, capsys):
    utc, local = local_times("Europe/Berlin", "2024-10-25 00:00", [60] * 95)
    decay(utc, local, tmp_path / "autumn.csv", 60)
    assert main(["discover", str(tmp_path / "autumn.csv"), "--time", "time"]) == 1
    said = capsys.readouterr().err
    assert "Clocks are set back by an hour in Europe/Berlin" in said
    assert "several runs" not in said
    assert "--drop-lines" not in said
    command = shlex.split(said.splitlines()[-1].split("change then: ")[1])
    assert command[-2:] == ["--zone", "Europe/Berlin"]
    assert main(command[1:]) == 0
    assert "times are counted in UTC, as those of Europe/Berlin" in capsys.readouterr().out
    series = read_series(tmp_path / "autumn.csv", Choice("time"), zone="Europe/Berlin")
    np.testing.assert_array_equal(series.t, utc)
    assert series.zoned


def test_an_hour_that_is_skipped_is_told_unless_the_zone_is_given(tmp_path):
    utc, local = local_times("Europe/Berlin", "2024-03-29 00:00", [60] * 95)
    decay(utc, local, tmp_path / "spring.csv", 60)
    (doubt,) = read_series(tmp_path / "spring.csv", Choice("time")).doubts
    assert "from 2024-03-31T01:00:00 to 2024-03-31T03:00:00" in doubt
    assert "--zone Europe/Berlin" in doubt
    named = read_series(tmp_path / "spring.csv", Choice("time"), zone="Europe/Berlin")
    assert not named.doubts
    np.testing.assert_array_equal(named.t, utc)


def test_times_that_a_zone_does_not_have_are_refused(tmp_path):
    t = np.datetime64("2024-03-30T00:00", "us") + np.arange(60) * HOUR
    decay(t, t, tmp_path / "winter.csv", 60)
    with pytest.raises(ValueError, match="2024-03-31T02:00:00 did not exist in Europe/Berlin"):
        read_series(tmp_path / "winter.csv", Choice("time"), zone="Europe/Berlin")


def test_the_zone_holds_in_every_series(tmp_path):
    utc, local = local_times("Europe/Berlin", "2024-10-26 12:00", [20] * 60)
    frame = pd.DataFrame({"time": local, "x": np.arange(61.0)})
    both = pd.concat([frame.assign(run=name) for name in "ab"]).sort_values(["time", "run"], kind="stable")
    both.sample(frac=1, random_state=0).sort_index().to_csv(tmp_path / "runs.csv", index=False)
    series = read_series(tmp_path / "runs.csv", Choice("time", series="run"), zone="Europe/Berlin")
    for one in series.t:
        np.testing.assert_array_equal(one, utc)


def test_times_that_name_their_zones_and_unknown_zones_are_refused(tmp_path, capsys):
    t = pd.date_range("2024-10-26", periods=20, freq="h", tz="UTC")
    pd.DataFrame({"time": t.map(str), "x": np.arange(20.0)}).to_csv(tmp_path / "zoned.csv", index=False)
    with pytest.raises(ValueError, match="name their time zones: leave out --zone"):
        read_series(tmp_path / "zoned.csv", Choice("time"), zone="Europe/Berlin")
    with pytest.raises(SystemExit):
        main(["discover", str(tmp_path / "zoned.csv"), "--time", "time", "--zone", "Berlin"])
    assert "'Berlin' is not a time zone, such as Europe/Berlin" in capsys.readouterr().err


def test_neighbours_of_a_regression_are_found_in_local_times(tmp_path, capsys):
    _, local = local_times("Europe/Berlin", "2024-10-25 00:00", [60] * 95)
    x = np.random.default_rng(0).normal(size=96)
    pd.DataFrame({"time": local, "x": x, "y": 2 * x + np.cumsum(x) / 9}).to_csv(tmp_path / "rows.csv", index=False)
    command = ["fit", str(tmp_path / "rows.csv"), "--target", "y", "--columns", "x", "--rows", "series"]
    assert main(command) == 0
    assert "by 'time' they are not, as clocks are set back in Europe/Berlin: --zone" in capsys.readouterr().out
    assert main([*command, "--zone", "Europe/Berlin"]) == 0
    assert "they are not" not in capsys.readouterr().out


@pytest.mark.parametrize("place", [10, 47, 52])
@pytest.mark.parametrize("zone", [None, "Europe/Zurich"])
def test_rows_written_twice_are_told_from_the_hour_that_comes_twice(tmp_path, capsys, place, zone):
    utc, local = local_times("Europe/Berlin", "2024-10-26 00:00", [30] * 95)
    decay(utc, local, tmp_path / "once.csv", 30)
    lines = (tmp_path / "once.csv").read_text().splitlines()
    twice = [*lines[: place + 6], *lines[place + 1 : place + 6], *lines[place + 6 :]]
    (tmp_path / "twice.csv").write_text("\n".join(twice) + "\n")
    given = ["--zone", zone] if zone else []
    assert main(["discover", str(tmp_path / "twice.csv"), "--time", "time", *given]) == 1
    said = capsys.readouterr().err
    assert f"line {place + 7}, column 'time': this row and 4 others repeat what stands above, time and values" in said
    assert ("Clocks are set back by an hour in Europe/Berlin" in said) == (zone is None)
    command = shlex.split("ardea discover" + said.split(": ardea discover")[-1])
    assert command[command.index("--drop-lines") + 1] == ",".join(str(place + 7 + k) for k in range(5))
    assert command[command.index("--zone") + 1] == (zone or "Europe/Berlin")
    assert main(command[1:]) == 0
    assert "96 rows" in capsys.readouterr().out


def test_many_copies_are_told_with_what_helps_in_pandas(tmp_path):
    utc, local = local_times("UTC", "2024-06-01 00:00", [30] * 40)
    decay(utc, local, tmp_path / "once.csv", 30)
    head, *rows = (tmp_path / "once.csv").read_text().splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([head, *(row for row in rows for _ in range(2))]) + "\n")
    with pytest.raises(ValueError, match=r"this row and 40 others repeat .* In pandas drop_duplicates\(\)"):
        read_series(tmp_path / "twice.csv", Choice("time"))
