/* policy.calibration (calibration_object.c). */
#ifndef DTL_BOX_CALIBRATION_OBJECT_H
#define DTL_BOX_CALIBRATION_OBJECT_H

#include <lua.h>

/* Pushes the function policy.calibration. Raises. */
void box_calibration_push(lua_State *L);

#endif
