#!/bin/sh
# Of interest (exit code 1) while a layer of type kda is there.
! ss-opt "$1" | grep -q "type kda"
