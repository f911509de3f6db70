# Writes OUT, a C file with the commit of the source tree SOURCE; left alone where it says so already. Run at every build.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUT} CONTENT 
  "#include \"files/identity.h\"\n\nconst char *identity_commit(void) { return \"${commit}\"; }\n")
