# c_bytes(HEX BYTES LENGTH): sets the variable BYTES to the text HEX as the items of a C array, without the last 0, and LENGTH to their number.
function(c_bytes hex bytes length)
  string(LENGTH "${hex}" digits)
  math(EXPR n "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," items "${hex}")
  set(${bytes} "${items}" PARENT_SCOPE)
  set(${length} ${n} PARENT_SCOPE)
endfunction()
