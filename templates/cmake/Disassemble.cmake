# cmake -DPROGRAM=<llvm-objdump> -DSYMBOL=<mangled name> -DFILE=<code object> -DOUTPUT=<file> -P Disassemble.cmake
execute_process(COMMAND "${PROGRAM}" -d --no-show-raw-insn "--disassemble-symbols=${SYMBOL}" "${FILE}"
  OUTPUT_FILE "${OUTPUT}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} cannot disassemble ${FILE}")
endif()
message(STATUS "${OUTPUT}")
