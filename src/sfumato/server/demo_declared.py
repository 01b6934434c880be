"""What the demonstration declares, as the files that users write: two schemas and a plan."""

__all__ = ["ARRIVALS", "PLAN", "VISITS"]

VISITS = """\
kind = "schema"
version = 1

[dataset]
name = "visits"
version = "{edition}"

[unit]
column = "patient_id"
population = 100000

[limit]
groups = 3
rows_per_group = 1
row = "visit"
person = "patient"

[columns.patient_id]
type = "text"

[columns.region]
type = "text"
keys = {regions}

[columns.sex]
type = "text"
keys = ["F", "M"]

[columns.age]
type = "whole"
bounds = [0, 99]

[columns.diagnosis]
type = "text"
keys = {diagnoses}

[columns.sbp]
type = "number"
bounds = [70, 240]
"""
ARRIVALS = """\
kind = "schema"
version = 1

[dataset]
name = "arrivals"

[unit]
column = "patient_id"
population = 1000000

[limit]
groups = 1
rows_per_group = 1
row = "arrival"
person = "patient"

[columns.patient_id]
type = "whole"

[columns.region]
type = "text"
keys = {regions}
"""
PLAN = """\
kind = "plan"
version = 1
name = "Arrivals in emergency departments"
year = {year}
account = "{account}"
aim = "least cost"
accounting = "basic"
purpose = "public health"
recipient = "public"
reason = "Weeks are compared with each other, and a region that doubles has to be seen."
legal_basis = "Invented for the demonstration."

[unit]
kind = "user"
column = "patient_id"
relation = "add/remove"

[cap]
epsilon = 20

[releases.daily]
every = "daily"
question = "SELECT region, COUNT(*) FROM arrivals GROUP BY region"
schema = "arrivals.toml"
data = "arrivals/{{period}}.parquet"
wanted = {{ epsilon = 0.03 }}

[releases.weekly]
every = "weekly"
question = "SELECT region, COUNT(*) FROM arrivals GROUP BY region"
schema = "arrivals.toml"
data = "arrivals/{{period}}.parquet"
wanted = {{ epsilon = 0.06 }}

[releases.monthly]
every = "monthly"
question = "SELECT region, COUNT(*) FROM arrivals GROUP BY region"
schema = "arrivals.toml"
data = "arrivals/{{period}}.parquet"
wanted = {{ epsilon = 0.12 }}
"""
