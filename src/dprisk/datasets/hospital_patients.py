"""Hospital patients, whose race or ethnicity is to be guessed: Texas-100X, and what stands in for it."""

from pathlib import Path

import numpy as np

from dprisk.csv_files import CsvFile
from dprisk.datasets.files import folder_of, present
from dprisk.datasets.labelled import LabelledTable
from dprisk.errors import InputFileError
from dprisk.tables import encode

DIABETES = "the UCI data set Diabetes 130-US hospitals, as prepared to stand in for Texas-100X"
NOTE = "The data stand in for Texas-100X: levels differ from those in papers about it."
TEXAS = "Texas-100X (texas_100x.csv), which process_texas.py of github.com/bargavj/Texas-100X makes"
OF_A_STAY = (
    "gender",
    "age",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "payer_code",
    "medical_specialty",
    "readmitted",
)
COUNTED = (
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
)
OF_TEXAS = ("SEX_CODE", "TYPE_OF_ADMISSION", "SOURCE_OF_ADMISSION", "PAT_STATUS", "RACE", "ADMITTING_DIAGNOSIS")
TEXAS_NUMBERS = ("LENGTH_OF_STAY", "PAT_AGE", "TOTAL_CHARGES")
UNKNOWN = "?"


def hospital(folder: str | Path) -> LabelledTable:
    """Patients of 130 US hospitals, one stay each: race in five values is the secret, one of 100 diagnoses the label.

    They stand in for Texas-100X. Left out are later stays of the same patient, patients of unknown race, and those
    whose main diagnosis is not among the hundred commonest.
    """
    path = present(folder_of(folder, "hospital-diabetes130"), "diabetes130_encounters.csv", DIABETES)
    file = CsvFile.open(path)
    read = file.columns(["patient", "race", "diag_1_top100", *OF_A_STAY, *COUNTED])
    diagnosis = np.array(file.numbers(read["diag_1_top100"], "diag_1_top100")).astype(np.int64)
    _, first = np.unique(np.asarray(read["patient"]), return_index=True)
    kept = np.sort(first)
    kept = kept[(np.asarray(read["race"])[kept] != UNKNOWN) & (diagnosis[kept] >= 0)]
    InputFileError.unless(kept.size > 0, f"{path} has no patient of known race and diagnosis.")
    race, races = encode([read["race"][row] for row in kept])
    coded = {name: encode([read[name][row] for row in kept]) for name in OF_A_STAY}
    known = {name: codes for name, (codes, _) in coded.items()}
    known |= {name: np.array(file.numbers(read[name], name))[kept] for name in COUNTED}
    sizes = {name: len(distinct) for name, (_, distinct) in coded.items()}
    label, diagnoses = encode(diagnosis[kept].tolist())
    classes = tuple(f"diagnosis {number}" for number in diagnoses)
    return LabelledTable("hospital", known, sizes, "race", race, tuple(races), label, classes, NOTE)


def texas_100x(folder: str | Path) -> LabelledTable:
    """Texas-100X itself: whether a patient is Hispanic is the secret, one of 100 surgical procedures the label.

    Put texas_100x.csv into the folder, or into `texas-100x` in it: the file that the authors' process_texas.py writes,
    with the columns SEX_CODE, TYPE_OF_ADMISSION, SOURCE_OF_ADMISSION, LENGTH_OF_STAY, PAT_AGE, PAT_STATUS, RACE,
    ETHNICITY (0 is Hispanic), TOTAL_CHARGES, ADMITTING_DIAGNOSIS and PRINC_SURG_PROC_CODE, categories as numbers.
    The hospital is not used, as by the authors.
    """
    path = present(folder_of(folder, "texas-100x"), "texas_100x.csv", TEXAS)
    file = CsvFile.open(path)
    read = file.columns([*OF_TEXAS, *TEXAS_NUMBERS, "ETHNICITY", "PRINC_SURG_PROC_CODE"])
    numbers = {name: np.array(file.numbers(column, name)) for name, column in read.items()}
    codes = {name: encode(numbers[name].tolist()) for name in (*OF_TEXAS, "PRINC_SURG_PROC_CODE")}
    ethnicity = numbers["ETHNICITY"].astype(np.int64)
    InputFileError.unless(
        set(np.unique(ethnicity).tolist()) <= {0, 1}, f"{path}: `ETHNICITY` must be 0 (Hispanic) or 1 (not Hispanic)."
    )
    known = {name: codes[name][0] for name in OF_TEXAS} | {name: numbers[name] for name in TEXAS_NUMBERS}
    sizes = {name: len(codes[name][1]) for name in OF_TEXAS}
    label, procedures = codes["PRINC_SURG_PROC_CODE"]
    classes = tuple(f"procedure {number:g}" for number in procedures)
    values = ("Hispanic", "not Hispanic")
    return LabelledTable("texas-100x", known, sizes, "ethnicity", ethnicity, values, label, classes)
