#!/bin/sh
# Runs split.sh on a few bills. What people pay must add up to the bill: not a cent may be lost.
# TODO: test what happens with 0 people
cd "$(dirname "$0")" || exit 1
passed=0 failed=0
check() { # check CENTS PEOPLE
	sum=0
	for share in $(sh split.sh "$1" "$2"); do sum=$((sum + share)); done
	if [ "$sum" -eq "$1" ]; then
		echo "ok    $1 cents for $2 people"
		passed=$((passed + 1))
	else
		echo "FAIL  $1 cents for $2 people: together they pay $sum"
		failed=$((failed + 1))
	fi
}
check 1000 2
check 900 3
check 1000 3
check 7 4
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
