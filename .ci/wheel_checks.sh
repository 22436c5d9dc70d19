#!/bin/sh
# What has to hold of the wheel in /wheel on a machine that has Python and nothing else: no network, no NumPy, no compiler, no
# bubblewrap. Beside it lies libmine.so, the kernel that attest init writes. PLOTS is empty where the wheel has no Vega.
set -eu
seconds() { date +%s.%N; }
begun=$(seconds)
python3 -m venv /venv
made=$(seconds)
/venv/bin/pip install --quiet --disable-pip-version-check --no-index /wheel/*.whl
installed=$(seconds)
cd /tmp
PATH=/venv/bin:$PATH
attest check --kernel builtin:flash --cases 20 --out run --quiet
judged=$(seconds)
[ "$(attest --version)" = "$(python -m attest --version)" ]
# With plots, where the source distribution has Vega.
[ -z "$PLOTS" ] || grep -q 'id="vega"' run/report.html
# Each library that came along has its licence.
for library in /venv/lib/python3*/site-packages/attest_attention.libs/*; do
  texts=${library%/*}/../attest/program/share/licenses
  text=$(sed -n "s/^\([^:]*\): ${library##*/} .*/\1/p" "$texts/README.txt")
  [ -s "$texts/$text" ]
done
# One that is wrong is found.
status=0
attest check --kernel fault:scale-ignored --dtype f32 --cases 20 --out wrong --quiet >findings || status=$?
[ "$status" = 1 ]
grep -q '^VIOLATED' findings
set -- wrong/cases/attention.oracle--*.safetensors
attest replay "$1" >replayed || status=$?
grep -q reproduced replayed
# A library behind walls, which are built without bubblewrap.
attest judge --print-contract sdpa-f32 | python -c 'import json, sys
contract = json.load(sys.stdin)
contract["cases"], contract["shapes"], contract["kernel"]["masks"] = 40, ["1,2,2,77,77,64"], []
print(json.dumps(contract))' >contract.json
attest judge --contract contract.json --kernel /wheel/libmine.so --out judged >judgement
grep -q '^PASS' judgement
grep -q 'walls .*Landlock' judgement
# What a project begins with names headers and program as they lie here.
attest init mine >/dev/null
home=$(sed -n 's/.*|| ATTEST=//p' mine/attest.sh)
[ -f "$home/include/attest/kernel.h" ]
[ -x "$home/bin/attest" ]
# A function in Python needs NumPy, and is told so.
python -c 'import attest; attest.check(lambda q, k, v: q, cases=5)' 2>&1 | grep -q "numpy"
pip list --format freeze --disable-pip-version-check >installed
[ "$(grep -cv '^pip=\|^setuptools=\|^wheel=' installed)" = 1 ]
echo "$begun $made $installed $judged" | awk '{ printf "%.1f s for an empty environment, %.1f s to install, %.1f s to the first verdict", $2 - $1, $3 - $2, $4 - $3 }'
