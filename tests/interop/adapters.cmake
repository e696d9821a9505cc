# cmake -DSOURCE_DIR=<root> -DPYTHON=<python3> [-DPROGRAM=<interop.parity>] -P adapters.cmake
# Compares our low-rank adapters with peft's on random tiny checkpoints: see adapters.py.
cmake_minimum_required(VERSION 3.25)
set(script adapters.py)
set(needs_also peft)
include("${CMAKE_CURRENT_LIST_DIR}/parity.cmake")
