/* dt.core: what dt/init.lua cannot do in Lua. */
#include "driver.h"

#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int clock_ms(lua_State *L) {
  lua_pushnumber(L, dt_clock_ms());
  return 1;
}

/* Is standard error a terminal? */
static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(STDERR_FILENO));
  return 1;
}

static int io_failure(lua_State *L, const char *path, int fd) {
  int code = errno;
  if (fd >= 0) close(fd);
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(code));
  return 2;
}

/* (path, line): one write of the whole line, on disk when it returns. Where the disk is full, none of it stays. */
static int append(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_pushliteral(L, "\n");
  lua_concat(L, 2);
  size_t len;
  const char *line = lua_tolstring(L, 2, &len);
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  struct stat before;
  if (fd < 0 || fstat(fd, &before)) return io_failure(L, path, fd);
  for (size_t done = 0; done < len;) {
    ssize_t n = write(fd, line + done, len - done);
    if (n > 0) done += (size_t)n;
    if (n >= 0 || errno == EINTR) continue;
    int code = errno;
    if (done > 0 && S_ISREG(before.st_mode) && ftruncate(fd, before.st_size)) code = errno;
    errno = code;
    return io_failure(L, path, fd);
  }
  if (fsync(fd) && errno != EINVAL && errno != EROFS) return io_failure(L, path, fd); /* pipes cannot */
  if (close(fd)) return io_failure(L, path, -1);
  lua_pushboolean(L, true);
  return 1;
}

/* (path, length): cuts what is behind. */
static int truncate_file(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (truncate(path, (off_t)luaL_checkinteger(L, 2))) return io_failure(L, path, -1);
  lua_pushboolean(L, true);
  return 1;
}

int lib_dt_open(lua_State *L) {
  static const luaL_Reg functions[] = {{"clock", clock_ms},
                                       {"append", append},
                                       {"truncate", truncate_file},
                                       {"is_terminal", is_terminal},
                                       {"open", lib_pair_open},
                                       {"fake", lib_pair_fake},
                                       {"describe", lib_pair_describe},
                                       {"close", lib_pair_close},
                                       {"encode", lib_pair_encode},
                                       {"decode", lib_pair_decode},
                                       {"prefix", lib_pair_prefix},
                                       {"policy", lib_pair_policy},
                                       {"set_costs", lib_pair_set_costs},
                                       {"calibrate", lib_pair_calibrate},
                                       {"save_tuned", lib_pair_save_tuned},
                                       {"generate", lib_pair_generate},
                                       {"generate_batch", lib_pair_generate_batch},
                                       {NULL, NULL}};
  lib_pair_types(L);
  luaL_newlib(L, functions);
  luaL_getmetatable(L, PAIR_TYPE);
  lua_setfield(L, -2, "pair_type");
  lua_pushstring(L, dt_version());
  lua_setfield(L, -2, "version");
  char machine[MACHINE_NAME];
  machine_name(machine, sizeof machine);
  lua_pushstring(L, machine);
  lua_setfield(L, -2, "machine");
  return 1;
}
