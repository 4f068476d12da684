"""`python -m streamskit.labs`: makes the student's version of every lab anew."""

from streamskit.labs.student import write_student_versions

for path in write_student_versions():
    print(path.name)
