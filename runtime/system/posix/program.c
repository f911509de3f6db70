/* The files of the program: see os.h. POSIX cannot tell the program from the library in another program. */
#include "system/os.h"

bool os_program(char path[PATH_MAX]) { return os_own_file(path); }

const char *os_program_image(char path[PATH_MAX]) { return os_program(path) ? path : ""; }
