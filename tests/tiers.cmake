# Which tier a test belongs to (README.md says what each is for): label "check", the narrow one; label "full", what scripts/test leaves
# to scripts/test full; label "long", by hand. A test without a label is run by scripts/test. tests/rules.sh sees to it that every
# pattern fits a test.
set(CHECK
  "unit\\.test_(bounds|chat|config|continue|cpu_cut|cpu_draw|cpu_kernels|cpu_memory|cpu_quant|cpu_rounded|gguf|heads|learn|lua_[a-z]+|model|processors|ranks|safetensors|sampling|session|status|team|text|tokenizer.*|tree|types|weights)"
  "lua\\.test_(args|batch|batches|box|grid|json|policy|record|rows|statistics|tree)"
  rules exact.check)

# Compiled inside the test, other programs' (packages, Slurm, browsers), faults by the hundred, the emulated device.
set(FULL
  sampling_mutants threads rooms tidy "faults\\..*" "cli\\.(advice|cuda|fresh|install|kills|package|paper|python|ranks|slurm)" "browser\\..*" "guide\\..*"
  "gpu\\..*" "cuda\\..*" "unit\\.test_cuda_(exact|prompt)" unit.test_lua_worst "exact\\.(crowd|quantized|sampling_part)" exact.real)
# What takes the sanitizers minutes; release has it in scripts/test ...
set(FULL_SANITIZED "cli\\..*" "lua\\.test_(driver|experiment|memory|papers|policies|policy_.*|report|shard|sweep|tune|window)" "unit\\.test_(cpu_isa|cpu_logits_hash|golden_.*)"
  exact.pages)
# ... and these, which have it there under the sanitizers too.
set(CHECKED_SANITIZED "cli\\.(bad_input|box|names|limits)")

function(fits RESULT NAME)
  set(${RESULT} FALSE PARENT_SCOPE)
  foreach(pattern ${ARGN})
    if(NAME MATCHES "^(${pattern})$")
      set(${RESULT} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

get_property(ALL_TESTS DIRECTORY PROPERTY TESTS)
foreach(name ${ALL_TESTS})
  fits(narrow ${name} ${CHECK})
  fits(full ${name} ${FULL})
  if(DTRUN_SANITIZE AND NOT full)
    fits(slow ${name} ${FULL_SANITIZED})
    fits(quick ${name} ${CHECKED_SANITIZED})
    if(slow AND NOT quick)
      set(full TRUE)
    endif()
  endif()
  if(full)
    set_property(TEST ${name} APPEND PROPERTY LABELS full)
  elseif(narrow)
    set_property(TEST ${name} APPEND PROPERTY LABELS check)
  endif()
endforeach()
