/* Finds models by their Hugging Face names in Hugging Face's cache. It downloads nothing. */
#ifndef DTL_HUB_H
#define DTL_HUB_H

#include "files/fail.h"

#define HUB_LEVELS 3 /* depth to search in a snapshot: GGUF files of a kind may have a folder of their own */

/* Finds the path of the model `name`, which is a folder or file; a name of named.h; an id ORG/NAME whose files are in
 * the cache ($HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub); ORG/NAME/FILE for one of these files; or
 * ORG/NAME:SPEC for the .gguf file that SPEC selects (gguf_name.h). A folder without config.json but with exactly one
 * .gguf file means that file; one with several models is an error. *path is malloc'd. DT_EINPUT: the message lists the
 * models to choose from, or names the command that downloads the model. A name that cannot be an id is returned
 * unchanged, even if there is no such file. */
dt_status hub_path(const char *name, char **path, dt_error *err);

/* Returns the folder of the cache, malloc'd; NULL: out of memory. */
char *hub_cache(void);

/* The parts of a Hugging Face name. */
typedef struct {
  char *id;         /* ORG/NAME, malloc'd */
  const char *file; /* the part after ORG/NAME/; NULL: not given */
  const char *spec; /* the part after ORG/NAME:; NULL: not given */
} hub_id;

/* Splits a name; false: it is not a Hugging Face name. The caller frees out->id. */
bool hub_parse(const char *name, hub_id *out);

/* Returns the cache's folder for ORG/NAME, malloc'd; it may not exist. */
char *hub_folder(const char *id);

/* Returns the folder of the commit that was downloaded last in such a folder, malloc'd; NULL: no download is
 * complete. */
char *hub_snapshot(const char *folder);

/* Finds the only .gguf file in a snapshot that matches `spec` (NULL: any). *path is its path below the snapshot,
 * malloc'd, or NULL if the snapshot has no .gguf file and spec is NULL. DT_EINPUT: no file or several match; the
 * message lists the files, with `id` as the model's name. */
dt_status hub_gguf(const char *snapshot, const char *id, const char *spec, char **path, dt_error *err);

/* Calls see(user, id, folder) for each model in the cache, sorted by id, incomplete ones included. */
void hub_each(void (*see)(void *user, const char *id, const char *folder), void *user);

#endif
