# Writes OUT, a C file with a digest of the sources in SOURCE and of those that read models, on which packed weights depend (packed.h); left
# alone where it says so already. Run at every build.
file(GLOB sources ${SOURCE}/*.c ${SOURCE}/*.h ${SOURCE}/../model/*.c ${SOURCE}/../model/*.h)
set(all "")
foreach(source ${sources})
  file(SHA256 ${source} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 all "${all}")
file(CONFIGURE OUTPUT ${OUT} CONTENT "#include \"internal.h\"\n\nconst char *cpu_layout(void) { return \"${all}\"; }\n")
