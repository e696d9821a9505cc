# chain_headers(<folder> <headers> <ends>) puts headers of a folder into chains: each header includes
# the one before. Sets before_<header> to the header before it, if it has one, and `followed` to the
# headers that another one follows; those of <ends> are never followed. An #include that is indented
# depends on a condition and does not count.
function(chain_headers folder headers ends)
  set(followed)
  foreach(header IN LISTS headers)
    file(STRINGS "${folder}/${header}" included REGEX "^#include <")
    list(TRANSFORM included REPLACE "^#include <([^>]+)>.*" "\\1")
    set(before)
    foreach(candidate IN LISTS included)
      if(candidate IN_LIST headers AND NOT candidate IN_LIST followed AND NOT candidate IN_LIST ends)
        set(before ${candidate})
        list(APPEND followed ${candidate})
        break()
      endif()
    endforeach()
    set(before_${header} ${before} PARENT_SCOPE)
  endforeach()
  set(followed ${followed} PARENT_SCOPE)
endfunction()
