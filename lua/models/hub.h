/* Models by name: what people call them on Hugging Face, and where its cache holds them. Nothing is downloaded. */
#ifndef DTL_HUB_H
#define DTL_HUB_H

#include "files/fail.h"

#define HUB_LEVELS 3 /* of folders in a snapshot: GGUF files may lie in one for each kind */

/* The path of the model `name`: a folder or a file, which is what it names; a name of named.h; or an id ORG/NAME whose files lie in
 * the cache ($HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub), ORG/NAME/FILE for one of them, or ORG/NAME:SPEC for the
 * .gguf file that SPEC means (gguf_name.h). A folder without config.json that holds one .gguf file stands for that file; one that
 * holds several models is none. *path is malloc'd. DT_EINPUT says what there is, or what would bring it. A name that can be no id
 * comes back as it is, whether or not there is such a file. */
dt_status hub_path(const char *name, char **path, dt_error *err);

/* The folder of the cache, malloc'd; NULL: out of memory. */
char *hub_cache(void);

/* ORG/NAME:SPEC taken apart. */
typedef struct {
  char *id;         /* ORG/NAME, malloc'd */
  const char *file; /* behind ORG/NAME/ in the name; NULL: not given */
  const char *spec; /* behind ORG/NAME: in the name; NULL: not given */
} hub_id;

/* False: the name is none. out->id is to be freed. */
bool hub_parse(const char *name, hub_id *out);

/* The cache's folder for ORG/NAME, malloc'd, whether or not it is there. */
char *hub_folder(const char *id);

/* The folder of the commit that was downloaded last, in such a folder: malloc'd; NULL: none is whole. */
char *hub_snapshot(const char *folder);

/* The only .gguf file in a snapshot that `spec` means, NULL: any; its path below the snapshot, malloc'd; NULL: it
 * holds none, and none is meant. DT_EINPUT lists what there is. id: what they are called by. */
dt_status hub_gguf(const char *snapshot, const char *id, const char *spec, char **path, dt_error *err);

/* Calls see(user, id, folder) with each model in that cache, sorted, those too that are not whole. */
void hub_each(void (*see)(void *user, const char *id, const char *folder), void *user);

#endif
