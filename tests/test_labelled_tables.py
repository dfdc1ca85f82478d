"""Tables whose people have a secret and a label: made by hand, and read from small files made up here."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from dprisk.datasets import LabelledTable, census, census19, census_2019, hospital, texas_100x
from dprisk.errors import DpriskError, InputFileError, MissingPackageError


def table() -> LabelledTable:
    columns = {"age": [20, 40, 60], "sex": ["f", "m", "f"], "job": ["a", "b", "c"], "ill": [1, 0, 1], "rich": [0, 0, 1]}
    return LabelledTable.of(columns, sensitive="ill", label="rich", numbers=("age",))


def test_features_are_numbers_by_range_and_places_by_category() -> None:
    known = table().known_features()
    assert known.tolist() == [[0, 1, 0, 0, 0.0], [1, 0, 1, 0, 0.5], [0, 0, 0, 1, 1.0]]  # sex, job in three places, age
    assert table().features()[:, -2:].tolist() == [[0, 1], [1, 0], [0, 1]]
    assert table().features(np.zeros(3, dtype=np.int64))[:, -2:].tolist() == [[1, 0]] * 3
    assert table().n_features == 7


def test_some_people_keep_the_scale_of_all() -> None:
    some = table().take(np.array([1]))
    assert some.known_features().tolist() == table().known_features()[[1]].tolist()
    assert sorted(table().sample(3, np.random.default_rng(0)).known["age"]) == [20, 40, 60]
    with pytest.raises(DpriskError, match="the table has 3 people; 4 were asked for"):
        table().sample(4, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"secret": np.array([0, 2])}, "secret must be given as whole numbers from 0 to 1"),
        ({"label": np.array([0.0, 1.0])}, "the label must be given as whole numbers from 0 to 1"),
        ({"label": np.array([0])}, "columns of made up must be equally long, got"),
        ({"values": ("only",)}, "secret needs at least two values"),
        ({"classes": ("only",)}, "label needs at least two classes"),
        ({"known": {}}, "needs at least one known attribute"),
        ({"categories": {"x": 1}}, "x must be given as whole numbers from 0 to 0"),
    ],
)
def test_what_is_no_table_is_refused(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "name": "made up",
        "known": {"x": np.array([0, 1])},
        "categories": {"x": 2},
        "sensitive": "secret",
        "secret": np.array([0, 1]),
        "values": ("no", "yes"),
        "label": np.array([0, 1]),
        "classes": ("a", "b"),
    }
    LabelledTable(**good)  # type: ignore[arg-type]
    with pytest.raises(DpriskError, match=message):
        LabelledTable(**good | change)  # type: ignore[arg-type]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DpriskError, match=r"There is no column 'pay' of categories; there are 'job'\."):
        LabelledTable.of({"job": ["a", "b"], "age": [1, 2]}, "job", "pay", numbers=("age",))
    with pytest.raises(DpriskError, match="The column 'age' must be numbers"):
        LabelledTable.of({"job": ["a", "b"], "ill": [0, 1], "age": ["x", "y"]}, "job", "ill", numbers=("age",))


LIKE_2019 = """AGEP,EDU,MSP,RAC1P,SEX,HISP,INDP_CAT,DREM,DPHY,DEAR,DEYE,OWN_RENT,PUMA,PINCP,label_ge50k,EXCERPT
27,7,6,0,0,0,4,0,0,0,0,0,01-01301,15400,0,national
61,9,1,3,1,0,11,0,0,1,0,1,01-01301,90000,1,national
40,7,1,6,1,1,11,0,0,0,0,1,01-01301,60000,1,national
"""


def test_the_survey_of_2019_has_any_threshold(tmp_path: Path) -> None:
    (tmp_path / "acs-2019-nist").mkdir()
    (tmp_path / "acs-2019-nist" / "census19_like.csv.gz").write_bytes(gzip.compress(LIKE_2019.encode()))
    found = census_2019(tmp_path)
    assert (found.size, found.secret.tolist(), found.label.tolist()) == (3, [0, 3, 6], [0, 1, 1])
    assert census_2019(tmp_path, income=90_000).label.tolist() == [0, 1, 0]
    assert census_2019(tmp_path, income=90_000).classes[1] == "earns at least 90,000"
    assert "levels differ from those in papers" in found.note
    with pytest.raises(DpriskError, match="income must be a number of dollars above 0"):
        census_2019(tmp_path, income=0)


ORIGINAL = """RT,AGEP,COW,SCHL,MAR,RAC1P,SEX,DREM,DPHY,DEAR,DEYE,WKHP,WAOB,ST,PINCP
P,30,1,21,1,1,2,2,2,2,1,40,1,51,120000
P,12,,8,5,2,1,2,2,2,2,,1,51,
P,50,9,24,5,9,1,1,2,2,2,10,8,51,-200
P,70,1,16,2,4,1,2,2,2,2,,1,51,30000
P,17,2,16,5,5,1,2,2,2,2,8,2,51,9000
"""


def test_census19_is_made_from_the_files_of_the_bureau(tmp_path: Path) -> None:
    """Above 16 and working; difficulties as yes or no; three codes of race are Native American."""
    (tmp_path / "psam_p51.csv").write_text(ORIGINAL)
    (tmp_path / "psam_p56.csv").write_text(ORIGINAL)
    found = census19(tmp_path)
    assert found.size == 6
    assert found.secret.tolist() == [0, 6, 2] * 2
    assert found.label.tolist() == [1, 0, 0] * 2
    assert found.known["COW"][:3].tolist() == [0, 8, 1]
    assert found.known["DEYE"][:3].tolist() == [1, 0, 0]
    assert found.known["DREM"][:3].tolist() == [0, 1, 0]
    assert found.note == ""
    (tmp_path / "psam_p56.csv").write_text(ORIGINAL.replace("P,30,1,21,1,1,", "P,30,1,21,1,,"))
    with pytest.raises(InputFileError, match="`RAC1P` must be 1 to 9"):
        census19(tmp_path)


PATIENTS = """patient,race,gender,age,admission_type_id,discharge_disposition_id,admission_source_id,time_in_hospital,\
payer_code,medical_specialty,num_lab_procedures,num_procedures,num_medications,number_outpatient,number_emergency,\
number_inpatient,diag_1,number_diagnoses,readmitted,diag_1_top100
0,Caucasian,Female,[0-10),6,25,1,1,?,Pediatrics,41,0,1,0,0,0,250.83,1,NO,3
0,Caucasian,Female,[0-10),6,25,1,9,?,Pediatrics,41,0,1,0,0,0,250.83,1,NO,3
1,?,Female,[10-20),1,1,7,3,?,?,59,0,18,0,0,0,276,9,>30,12
2,Asian,Male,[10-20),1,1,7,3,?,?,59,0,18,0,0,0,276,9,>30,-1
3,Asian,Male,[10-20),1,1,7,3,MC,?,59,0,18,0,0,0,276,9,>30,12
"""


def test_patients_count_once_with_a_known_race_and_a_common_diagnosis(tmp_path: Path) -> None:
    (tmp_path / "diabetes130_encounters.csv").write_text(PATIENTS)
    found = hospital(tmp_path)
    assert found.values == ("Asian", "Caucasian")
    assert (found.secret.tolist(), found.classes, found.label.tolist()) == (
        [1, 0],
        ("diagnosis 3", "diagnosis 12"),
        [0, 1],
    )
    assert found.known["time_in_hospital"].tolist() == [1, 3]


TEXAS = """,THCIC_ID,SEX_CODE,TYPE_OF_ADMISSION,SOURCE_OF_ADMISSION,LENGTH_OF_STAY,PAT_AGE,PAT_STATUS,RACE,ETHNICITY,\
TOTAL_CHARGES,ADMITTING_DIAGNOSIS,PRINC_SURG_PROC_CODE
0,1,0,0,1,3,5,0,3,1,1200.5,17,0
1,1,1,0,1,1,9,0,2,0,800.0,5,1
"""


def test_texas_100x_is_read_as_its_authors_write_it(tmp_path: Path) -> None:
    (tmp_path / "texas-100x").mkdir()
    path = tmp_path / "texas-100x" / "texas_100x.csv"
    path.write_text(TEXAS)
    found = texas_100x(tmp_path)
    assert (found.values, found.secret.tolist()) == (("Hispanic", "not Hispanic"), [1, 0])
    assert (found.label.tolist(), found.known["PAT_AGE"].tolist()) == ([0, 1], [5, 9])
    path.write_text(TEXAS.replace("3,1,1200.5", "3,2,1200.5"))
    with pytest.raises(InputFileError, match=r"`ETHNICITY` must be 0 \(Hispanic\) or 1"):
        texas_100x(tmp_path)


def test_the_survey_of_2024_is_read_by_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    from pyarrow import parquet

    heading = "AGEP,COW,SCHL,MAR,RAC1P,SEX,DREM,DPHY,DEAR,DEYE,WKHP,NATIVITY,CIT,HISP,ST,label"
    rows = [[30, 0, 20, 0, 3, 1, 0, 0, 0, 1, 40, 0, 0, 0, 51, 1], [17, 7, 15, 4, 6, 0, 0, 0, 0, 0, 8, 1, 4, 23, 1, 0]]
    columns = [pyarrow.array(column, pyarrow.uint8()) for column in np.array(rows).T]
    parquet.write_table(pyarrow.table(columns, heading.split(",")), tmp_path / "census24.parquet")
    found = census(tmp_path)
    assert (found.secret.tolist(), found.label.tolist(), found.known["AGEP"].tolist()) == ([3, 6], [1, 0], [30, 17])
    assert "ST" not in found.known
    parquet.write_table(pyarrow.table(columns[1:], heading.split(",")[1:]), tmp_path / "census24.parquet")
    with pytest.raises(InputFileError, match="has no column `AGEP`"):
        census(tmp_path)
    (tmp_path / "census24.parquet").write_text("no parquet")
    with pytest.raises(InputFileError, match="cannot be read as a Parquet file"):
        census(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(
        MissingPackageError, match=r"needs pyarrow: pip install .dprisk.learning..; or take census-2019"
    ):
        census(tmp_path)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (census, r"no census24\.parquet or .* put it there"),
        (census_2019, r"no census19_like\.csv or .* put it there"),
        (census19, r"no psam_p\*\.csv in .*; put the person files psam_p\*\.csv of the 2019 .* there"),
        (hospital, r"no diabetes130_encounters\.csv or .* put it there"),
        (texas_100x, r"no texas_100x\.csv or .*process_texas\.py.* put it there"),
    ],
)
def test_a_missing_file_says_what_to_put_where(tmp_path: Path, read, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputFileError, match=message):
        read(tmp_path)
