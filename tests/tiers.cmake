# Which tier a test belongs to (README.md says what each is for): label "check", the narrow one; label "full", what scripts/test leaves
# to scripts/test full; label "long", by hand. A test without a label is run by scripts/test. tests/rules.sh sees to it that every
# pattern fits a test.
set(CHECK
  "unit\\.test_(bounds|chat|config|continue|cpu_cut|cpu_draw|cpu_kernels|cpu_memory|cpu_quant|cpu_rounded|gguf|heads|learn|lua_[a-z]+|model|processors|ranks|safetensors|sampling|session|status|team|text|tokenizer.*|tree|types|weights)"
  "lua\\.test_(args|batch|batches|box|grid|json|policy|record|rows|tree)"
  rules exact.check)

# Compiled inside the test, other programs' (packages, Slurm, browsers), faults by the hundred, the emulated device.
set(FULL
  arm bench_arm bench_gpu sampling_mutants threads rooms tidy "faults\\..*" "cli\\.(advice|calibrate|clients|cuda|fresh|install|kills|package|paper|pull|python|ranks|serve_clients|slurm|split_smollm2)" "browser\\..*" "guide\\..*" "lua\\.disturbed_200"
  "gpu\\..*" "cuda\\..*" "unit\\.test_(cpu_(exact|isa|logits_hash)|cuda_(draw|exact|failures|groups|heads|packed|prompt|q8|turns))" unit.test_lua_worst "exact\\.(crowd|exit_part|more|two_drafts_part|quantized|sampling_part)" exact.real)
# What takes the sanitizers minutes; release has it in scripts/test ...
set(FULL_SANITIZED "cli\\..*" "lua\\.test_(asking|disturbed|driver|experiment|memory|papers|policies|policy_.*|report|shard|statistics|sweep|trace|tune|window)"
  "unit\\.test_(cuda_.*|golden_.*|ranks_same)" exact.pages exact.marks exact.hashes exact.exit exact.two_drafts exact.part)
# ... but for these: with the sanitizers in scripts/test, without in scripts/test full.
set(SANITIZED_ONLY "cli\\.(bad_input|box|names|limits)" "unit\\.test_(lua_box|malformed)")

# The longest, which begin first: so no core waits for one at the end.
set(LONGEST cli.cuda unit.test_cuda_exact cli.fresh cli.slurm exact.part cli.costs cli.output cli.heads cli.pull exact.check exact.variants cli.asking unit.test_cpu_exact exact.hashes cli.bad_input
  unit.test_lua_box unit.test_golden_sampling unit.test_malformed cli.box unit.test_cpu_kernels unit.test_ranks)

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
  fits(sanitized ${name} ${SANITIZED_ONLY})
  if(NOT DTRUN_SANITIZE AND sanitized)
    set(full TRUE)
  elseif(DTRUN_SANITIZE AND NOT full AND NOT sanitized)
    fits(full ${name} ${FULL_SANITIZED})
  endif()
  if(full)
    set_property(TEST ${name} APPEND PROPERTY LABELS full)
  elseif(narrow)
    set_property(TEST ${name} APPEND PROPERTY LABELS check)
  endif()
endforeach()

list(LENGTH LONGEST cost)
foreach(name ${LONGEST})
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
  math(EXPR cost "${cost} - 1")
endforeach()
