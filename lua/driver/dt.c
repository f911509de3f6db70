/* dt.core: the functions of dt/init.lua that Lua cannot provide. */
#include "driver/driver.h"
#include "dtrun_ranks.h"

#include "files/machine.h"
#include "system/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int clock_ms(lua_State *L) {
  lua_pushnumber(L, dt_clock_ms());
  return 1;
}

/* () -> whether standard error is a terminal */
static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(STDERR_FILENO));
  return 1;
}

/* (text): sets the text to print if Ctrl-C ends the driver; nil: none */
static int at_interrupt(lua_State *L) {
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, DRIVER_INTERRUPTED);
  return 0;
}

static int io_failure(lua_State *L, const char *path, int fd) {
  int code = errno;
  if (fd >= 0) close(fd);
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(code));
  return 2;
}

/* (path, line): appends the line in one write and returns when it is on disk. If the disk is full, no part of the line
 * remains. */
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
  if (fsync(fd) && errno != EINVAL && errno != EROFS) return io_failure(L, path, fd); /* pipes do not support it */
  if (close(fd)) return io_failure(L, path, -1);
  lua_pushboolean(L, true);
  return 1;
}

/* Locks an open file until this process ends, which also closes it; false: another process has the lock. Files that
 * cannot be locked (devices, some file systems) count as locked. */
static bool lock_file(lua_State *L, int fd) {
  struct stat file;
  if (fstat(fd, &file) || !S_ISREG(file.st_mode)) return close(fd) == 0;
  luaL_getsubtable(L, LUA_REGISTRYINDEX, "dt.locked"); /* "device:inode" -> true */
  lua_pushfstring(L, "%I:%I", (LUAI_UACINT)file.st_dev, (LUAI_UACINT)file.st_ino);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, -3) != LUA_TNIL) return close(fd) == 0;
  lua_pop(L, 1);
  if (!os_lock(fd, false)) {
    bool taken = errno == EWOULDBLOCK;
    close(fd);
    return !taken;
  }
  lua_pushboolean(L, true);
  lua_rawset(L, -3);
  return true;
}

/* (path) -> true: from now on no other process can lock the file, until this one ends. A file that cannot be created
 * counts as locked, since writing will report the error. */
static int lock(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  bool free = fd < 0 || lock_file(L, fd);
  lua_pushboolean(L, true);
  if (free) return 1;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: another process is writing this file: wait until it ends, or give another file", path);
  return 2;
}

/* (path, length): truncates the file to that length */
static int truncate_file(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (truncate(path, (off_t)luaL_checkinteger(L, 2))) return io_failure(L, path, -1);
  lua_pushboolean(L, true);
  return 1;
}

/* () -> the folders with dtrun's files, in the order in which they are searched */
static int homes(lua_State *L) {
  char **list;
  int n;
  dt_error err;
  if (dt_homes(&list, &n, &err)) return luaL_error(L, "%s", err.message);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushstring(L, list[i]);
    lua_rawseti(L, -2, i + 1);
    free(list[i]);
  }
  free(list);
  return 1;
}

/* ({text, ..}) -> a digest of the list */
static int digest_of(lua_State *L) {
  char text[DIGEST_TEXT];
  digest d;
  digest_begin(&d, "texts");
  luaL_checktype(L, 1, LUA_TTABLE);
  for (lua_Integer i = 1; lua_rawgeti(L, 1, i) != LUA_TNIL; i++) {
    size_t len;
    const char *one = luaL_checklstring(L, -1, &len);
    uint64_t length = len;
    digest_add(&d, &length, sizeof length);
    digest_add(&d, one, len);
    lua_pop(L, 1);
  }
  digest_end(&d, text);
  lua_pushstring(L, text);
  return 1;
}

/* (path) -> facts about a model from its files, without loading it; hashes are texts of 16 hexadecimal digits */
static int look(lua_State *L) {
  dt_model_facts facts;
  dt_error err;
  char digits[17];
  if (dt_model_look(luaL_checkstring(L, 1), &facts, &err)) return driver_failure(L, &err);
  lua_createtable(L, 0, 4);
  lua_pushstring(L, facts.family);
  lua_setfield(L, -2, "family");
  snprintf(digits, sizeof digits, "%016" PRIx64, facts.norm);
  lua_pushstring(L, digits);
  lua_setfield(L, -2, "norm");
  snprintf(digits, sizeof digits, "%016" PRIx64, facts.tokenizer);
  lua_pushstring(L, digits);
  lua_setfield(L, -2, "tokenizer");
  lua_pushinteger(L, (lua_Integer)facts.bytes);
  lua_setfield(L, -2, "bytes");
  return 1;
}

/* Pushes a malloc'd text (nil if it is NULL) and frees it. */
static void push_owned(lua_State *L, char *text) {
  lua_pushstring(L, text);
  free(text);
}

/* (name) -> the script that downloads this model, or nil; the folder for it; the names of all such models */
static int named_model(lua_State *L) {
  char *script, *folder, *names;
  dt_error err;
  if (dtl_named_model(luaL_checkstring(L, 1), &script, &folder, &names, &err)) return driver_failure(L, &err);
  lua_createtable(L, 0, 3);
  push_owned(L, script), lua_setfield(L, -2, "script");
  push_owned(L, folder), lua_setfield(L, -2, "folder");
  push_owned(L, names), lua_setfield(L, -2, "names");
  return 1;
}

static int mpi(lua_State *L) {
  lua_pushboolean(L, dt_ranks_possible());
  return 1;
}

/* Pushes the list of names in DT_PAIR_FACTS. */
static void push_facts(lua_State *L) {
#define NAME(name, of_draft) #name,
  static const char *const names[] = {DT_PAIR_FACTS(NAME)};
#undef NAME
  int n = sizeof names / sizeof *names;
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushstring(L, names[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

int driver_dt_open(lua_State *L) {
  static const luaL_Reg functions[] = {{"clock", clock_ms},
                                       {"usage", driver_usage},
                                       {"disturbed", driver_disturbed},
                                       {"append", append},
                                       {"truncate", truncate_file},
                                       {"lock", lock},
                                       {"is_terminal", is_terminal},
                                       {"at_interrupt", at_interrupt},
                                       {"request", driver_read_request},
                                       {"read_text", driver_read_text},
                                       {"fields", driver_fields},
                                       {"open", driver_pair_open},
                                       {"needs", driver_pair_needs},
                                       {"fake", driver_pair_fake},
                                       {"homes", homes},
                                       {"mpi", mpi},
                                       {"look", look},
                                       {"drafts", driver_drafts},
                                       {"named_model", named_model},
                                       {"digest", digest_of},
                                       {"read", driver_pair_read},
                                       {"forget", driver_pair_forget},
                                       {"describe", driver_pair_describe},
                                       {"bandwidth", driver_pair_bandwidth},
                                       {"close", driver_pair_close},
                                       {"encode", driver_pair_encode},
                                       {"decode", driver_pair_decode},
                                       {"prefix", driver_pair_prefix},
                                       {"conversations", driver_pair_conversations},
                                       {"message", driver_pair_message},
                                       {"policy", driver_pair_policy},
                                       {"set_costs", driver_pair_set_costs},
                                       {"measure_costs", driver_pair_measure_costs},
                                       {"identity", driver_pair_identity},
                                       {"save_tuned", driver_pair_save_tuned},
                                       {"generate", driver_pair_generate},
                                       {NULL, NULL}};
  driver_pair_types(L);
  driver_request_type(L);
  luaL_newlib(L, functions);
  luaL_getmetatable(L, PAIR_TYPE);
  lua_setfield(L, -2, "pair_type");
  lua_pushstring(L, dt_version());
  lua_setfield(L, -2, "version");
  push_facts(L);
  lua_setfield(L, -2, "facts");
  lua_pushinteger(L, dt_processors());
  lua_setfield(L, -2, "processors");
  char machine[MACHINE_NAME];
  machine_name(machine, sizeof machine);
  lua_pushstring(L, machine);
  lua_setfield(L, -2, "machine");
  return 1;
}
