# A script has no targets, and CMake refuses to make one: a component must have returned by then.
macro(idf_component_register)
  set(registered 1)
  return()
endmacro()

include(${COMPONENT}/CMakeLists.txt)
if(NOT registered)
  message(FATAL_ERROR "${COMPONENT} did not register itself")
endif()
