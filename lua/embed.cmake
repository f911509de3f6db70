# Writes OUT, a C file with every Lua module of FILES as bytes: dtl_embedded[] = {name, text, length}. The file dt/A/B.lua is the module
# dt.A.B, which only lua/dt itself and its tests require; dt/A/init.lua is dt.A, and a FACE, dt/A/B.lua, is dt.B: these are for drivers.
# A file A/B.css or A/B.js is the module dt.A.B_css or dt.A.B_js, which is its text.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../scripts/bytes.cmake)
set(FACES
  api/complain api/json api/shell
  draw/gnuplot
  experiment/alone experiment/asking experiment/batches experiment/bound experiment/contexts experiment/papers experiment/questions
  experiment/scatter experiment/seeds experiment/sweep experiment/tune
  record/merge record/shard
  report/answers report/statistics
  trace/trace_page trace/trace_trees)
set(bodies "")
set(rows "")
set(names "")
foreach(file ${FILES})
  file(RELATIVE_PATH path ${CMAKE_CURRENT_LIST_DIR}/dt ${file})
  string(REGEX REPLACE "\\.lua$" "" path ${path})
  string(REGEX REPLACE "\\.(css|js)$" "_\\1" path ${path})
  if(path IN_LIST FACES)
    list(REMOVE_ITEM FACES ${path})
    get_filename_component(path ${path} NAME)
  endif()
  string(REGEX REPLACE "/init$" "" path ${path})
  string(REPLACE "/" "." name dt.${path})
  if(name IN_LIST names)
    message(FATAL_ERROR "${file}: another module is called ${name}")
  endif()
  list(APPEND names ${name})
  string(MAKE_C_IDENTIFIER ${name} text)
  file(READ ${file} hex HEX)
  if(name MATCHES "_(css|js)$")
    string(HEX "return [==[\n" begin)
    string(HEX "]==]" end)
    string(CONCAT hex ${begin} ${hex} ${end})
  endif()
  c_bytes("${hex}" bytes length)
  string(APPEND bodies "static const unsigned char ${text}[] = {${bytes}0};\n")
  string(APPEND rows "  {\"${name}\", (const char *)${text}, ${length}},\n")
endforeach()
if(FACES)
  message(FATAL_ERROR "lua/embed.cmake: no files of these faces: ${FACES}")
endif()
file(WRITE ${OUT} "#include \"box/embedded.h\"\n\n${bodies}\nconst dtl_module dtl_embedded[] = {\n${rows}  {0, 0, 0}};\n")
