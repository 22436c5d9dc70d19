"""Honest, in Python over NumPy, computed in f64.
Stands for: nothing to catch."""

import attest_adapter
from honest import attention, manifest

attest_adapter.serve(attention, manifest("honest-python"))
