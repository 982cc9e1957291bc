#!/bin/sh
# Splits a bill: split.sh CENTS PEOPLE prints what each of them pays, a line each.
# TODO: a tip, such as split.sh 1000 3 --tip 10
cents=$1 people=$2
share=$((cents / people))
while [ "$people" -gt 0 ]; do
	echo "$share"
	people=$((people - 1))
done
