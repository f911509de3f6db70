/* Models by their Hugging Face names, and their places in its cache. Downloads nothing. */
#ifndef DTL_HUB_H
#define DTL_HUB_H

#include "files/fail.h"

#define HUB_LEVELS 3 /* of folders in a snapshot: GGUF files may lie in one for each kind */

/* The path of the model `name`: a folder or file; a name of named.h; an id ORG/NAME whose files lie in the cache
 * ($HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub); ORG/NAME/FILE for one of these files; or ORG/NAME:SPEC for
 * the .gguf file that SPEC means (gguf_name.h). A folder without config.json but with one .gguf file stands for that
 * file; with several models it is an error. *path is malloc'd. DT_EINPUT lists the models there are, or names the
 * command that brings it. A name that cannot be an id is returned unchanged, even if there is no such file. */
dt_status hub_path(const char *name, char **path, dt_error *err);

/* The folder of the cache, malloc'd; NULL: out of memory. */
char *hub_cache(void);

/* ORG/NAME:SPEC taken apart. */
typedef struct {
  char *id;         /* ORG/NAME, malloc'd */
  const char *file; /* behind ORG/NAME/ in the name; NULL: not given */
  const char *spec; /* behind ORG/NAME: in the name; NULL: not given */
} hub_id;

/* False: the name is no id. The caller frees out->id. */
bool hub_parse(const char *name, hub_id *out);

/* The cache's folder for ORG/NAME, malloc'd; it may not exist. */
char *hub_folder(const char *id);

/* The folder of the last downloaded commit in such a folder: malloc'd; NULL: none is complete. */
char *hub_snapshot(const char *folder);

/* The only .gguf file in a snapshot that `spec` means (NULL: any): its path below the snapshot, malloc'd. *path is NULL
 * if the snapshot has no .gguf file and spec is NULL. DT_EINPUT lists the files. id: their name in messages. */
dt_status hub_gguf(const char *snapshot, const char *id, const char *spec, char **path, dt_error *err);

/* Calls see(user, id, folder) with each model in that cache, sorted, incomplete ones too. */
void hub_each(void (*see)(void *user, const char *id, const char *folder), void *user);

#endif
