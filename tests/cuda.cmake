# What runs on the CUDA backend: ctest -L gpu. In a build with nvcc on a GPU (skipped where there is none), elsewhere, also under
# the sanitizers, on the emulated device of cuda_emu, with less work: a pass of it takes a tenth of a second.
# The tests are those of the CPU backend: the same programs with another backend. cuda/README.md lists which has which.
if(DTRUN_CUDA)
  set(device dtrun)
  set(policies linear fixed_tree dynatree rate eagle2 opt_tree)
  set(length -n 500 --ignore-eos)
  set(matrix --prompts 4)
else()
  set(device dtrun_emu)
  set(length -n 24 --rounds 1)
  set(matrix --prompts 2 --chars 40 -n 4)
  set(skipped *mini-*) # test_cuda_generation has the bundled target
  if(DTRUN_SANITIZE)
    set(length -n 6 --rounds 1)
    set(heads heads_say_what*)
  endif()
endif()

function(gpu_test NAME)
  add_test(NAME ${NAME} COMMAND ${ARGN})
  set_tests_properties(${NAME} PROPERTIES LABELS gpu)
  if(DTRUN_SANITIZE AND NOT DTRUN_CUDA)
    set_tests_properties(${NAME} PROPERTIES FIXTURES_REQUIRED emulated)
  endif()
  if(DTRUN_CUDA) # the emulated device is always there
    set_tests_properties(${NAME} PROPERTIES SKIP_RETURN_CODE 77 SKIP_REGULAR_EXPRESSION "no GPU can be used")
  endif()
endfunction()

# A program of unit/ that runs with the backend that it is given.
function(gpu_program NAME)
  if(DTRUN_CUDA)
    gpu_test(gpu.${NAME} test_${NAME} ${ARGN})
    return()
  endif()
  add_executable(test_${NAME}_emu unit/test_${NAME}.c ${PROJECT_SOURCE_DIR}/runtime/pair/backends.c)
  target_compile_definitions(test_${NAME}_emu PRIVATE DTRUN_CUDA SOURCE_DIR="${DTRUN_TESTS_ROOT}")
  target_include_directories(test_${NAME}_emu PRIVATE unit)
  target_link_libraries(test_${NAME}_emu PRIVATE dtrun_cuda_emu dtrun_runtime PkgConfig::CMOCKA)
  gpu_test(gpu.${NAME} test_${NAME}_emu ${ARGN})
  if(DTRUN_SANITIZE)
    on_demand(test_${NAME}_emu)
  endif()
endfunction()

# What gpu.sh asks a GPU; on the emulated device for its rehearsal.
if(DTRUN_CUDA)
  add_executable(wgmma bench/wgmma.cu)
  target_link_libraries(wgmma PRIVATE dtrun_cuda)
  # wgmma is in the code for exactly this architecture only.
  set_target_properties(wgmma PROPERTIES CUDA_ARCHITECTURES OFF)
  target_compile_options(wgmma PRIVATE -std=c++20 -fmad=false -gencode=arch=compute_90a,code=sm_90a)
  target_include_directories(wgmma PRIVATE ${PROJECT_SOURCE_DIR}/runtime)
elseif(NOT DTRUN_SANITIZE)
  foreach(name limit gpu memory)
    add_executable(bench_${name}_emu bench/bench_${name}.c ${PROJECT_SOURCE_DIR}/runtime/pair/backends.c)
    target_compile_definitions(bench_${name}_emu PRIVATE DTRUN_CUDA)
    target_link_libraries(bench_${name}_emu PRIVATE dtrun_cuda_emu dtrun_runtime)
  endforeach()
  set_source_files_properties(bench/wgmma.cu PROPERTIES LANGUAGE CXX)
  add_executable(wgmma_emu bench/wgmma.cu)
  target_compile_features(wgmma_emu PRIVATE cxx_std_20)
  target_compile_options(wgmma_emu PRIVATE -Wno-unknown-pragmas -xc++)
  target_link_libraries(wgmma_emu PRIVATE dtrun_cuda_emu dtrun_runtime)
endif()

gpu_program(golden_logits cuda ${skipped})
gpu_program(heads cuda ${heads})
# Whole generations: --compare fails unless the tokens are those of plain decoding.
set(prompt --backend cuda --compare ar -p "The old man went down to the")
foreach(policy ${policies})
  gpu_test(gpu.exact.${policy} ${device} ${policy} ${prompt} ${length})
endforeach()
foreach(policy linear dynatree)
  gpu_test(gpu.exact.${policy}.sampling ${device} ${policy} ${prompt} ${length} --temp 1 --top-p 0.9 --seed 3)
endforeach()
if(NOT DTRUN_SANITIZE)
  gpu_test(gpu.exact.matrix ${device} run ${CMAKE_CURRENT_SOURCE_DIR}/exact/matrix.lua --backend cuda ${matrix})
endif()

if(DTRUN_CUDA)
  gpu_program(golden_sampling 2000 cuda)
  # These need no GPU: without any of CUDA's libraries, and what nvcc made of the kernels.
  add_test(NAME cli.no_cuda COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cli/no_cuda.sh $<TARGET_FILE:dtrun> ${PROJECT_SOURCE_DIR})
  set_tests_properties(cli.no_cuda PROPERTIES LABELS gpu)
  add_test(NAME cuda.sass COMMAND dtrun run ${CMAKE_CURRENT_SOURCE_DIR}/sass/check.lua $<TARGET_FILE:dtrun_cuda>)
  set_tests_properties(cuda.sass PROPERTIES LABELS sass SKIP_RETURN_CODE 77)
  return()
endif()

gpu_test(cli.cuda ${CMAKE_CURRENT_SOURCE_DIR}/cli/cuda.sh $<TARGET_FILE:dtrun_emu> ${PROJECT_SOURCE_DIR})

# Kernels wait before they read and write what others do, and blocks fence what they tell each other: see cuda_emu/cuda_runtime.h.
if(NOT DTRUN_SANITIZE)
  foreach(name forward heads prompt sample)
    gpu_test(cuda.waits.${name} test_cuda_${name})
  endforeach()
  gpu_test(cuda.waits.exact test_cuda_exact rows_that*)
  gpu_test(cuda.waits.parts test_cuda_parts what_follows*)
  # A device with less shared memory takes more than 64 rows otherwise.
  gpu_test(cuda.small test_cuda_exact a_prompt_pass*)
  set_tests_properties(cuda.small PROPERTIES ENVIRONMENT_MODIFICATION CUDA_EMU_SMALL=set:1)
  set_tests_properties(cuda.waits.forward cuda.waits.heads cuda.waits.prompt cuda.waits.sample cuda.waits.exact cuda.waits.parts
    PROPERTIES ENVIRONMENT_MODIFICATION CUDA_EMU_WATCH=set:1)
  # "auto" takes the device: a window's tokens are those of transformers. Prompts of 300 tokens take it minutes.
  gpu_test(gpu.window dtrun_emu run ${CMAKE_CURRENT_SOURCE_DIR}/lua/test_window.lua)
  set_tests_properties(gpu.window PROPERTIES LABELS "gpu;long")
endif()
