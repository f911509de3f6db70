# Installation, uninstallation, and the Debian package (cpack in the build folder).
include(GNUInstallDirs)
set(SHARED_FILES ${CMAKE_INSTALL_DATADIR}/dtrun)

install(TARGETS dtrun DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET dtrun_pull)
  install(TARGETS dtrun_pull DESTINATION lib/dtrun)
endif()
if(TARGET dtrun_serve)
  install(TARGETS dtrun_serve DESTINATION lib/dtrun)
  install(FILES scripts/dtrun-serve.service DESTINATION lib/systemd/system)
  install(FILES scripts/dtrun-serve.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
# Not in the Debian package, which would otherwise install MPI for all users.
if(TARGET dtrun_mpi)
  install(TARGETS dtrun_mpi LIBRARY DESTINATION lib/dtrun COMPONENT mpi)
endif()
install(DIRECTORY policies models DESTINATION ${SHARED_FILES} PATTERN "*.gguf*" EXCLUDE PATTERN ".get-model.*" EXCLUDE)
install(DIRECTORY scripts/prompts DESTINATION ${SHARED_FILES}/scripts) # for the drivers paper, tune and vocab
install(DIRECTORY scripts DESTINATION ${SHARED_FILES} USE_SOURCE_PERMISSIONS
  FILES_MATCHING PATTERN "*.lua" PATTERN "get-model" PATTERN "*.sbatch" PATTERN slurm/README.md PATTERN training EXCLUDE
  PATTERN python EXCLUDE PATTERN completion EXCLUDE)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The library: dtrun.h, and all that it includes under dtrun/, by names that begin there.
install(TARGETS dtrun_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES runtime/installed.h RENAME dtrun.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(todo dtrun.h dtrun_fake.h dtrun_ranks.h host.h)
set(public)
while(todo)
  list(POP_FRONT todo header)
  if(header IN_LIST public)
    continue()
  endif()
  list(APPEND public ${header})
  set(path ${PROJECT_SOURCE_DIR}/runtime/${header})
  if(NOT EXISTS ${path})
    set(path ${PROJECT_SOURCE_DIR}/lua/${header})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  string(REGEX MATCHALL "#include \"[a-z_/]+\\.h\"" includes "${text}")
  list(TRANSFORM includes REPLACE "#include \"(.*)\"" "\\1")
  list(APPEND todo ${includes})
  string(REGEX REPLACE "#include \"([a-z_/]+\\.h)\"" "#include \"dtrun/\\1\"" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/dtrun/${header} CONTENT "${text}" @ONLY)
endwhile()
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/dtrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(RELATIVE_PATH PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(scripts/dtrun.pc.in dtrun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dtrun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The program itself prints its manual page, and answers the completion scripts.
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/dtrun.1 COMMAND dtrun --man > ${PROJECT_BINARY_DIR}/dtrun.1 DEPENDS dtrun VERBATIM)
add_custom_target(manual ALL DEPENDS ${PROJECT_BINARY_DIR}/dtrun.1)
install(FILES ${PROJECT_BINARY_DIR}/dtrun.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# Builds all that is installed, without tests: cmake --build build --target product, then cmake --install, cpack or
# Python.
set(PRODUCT dtrun dtrun_shared manual)
if(TARGET dtrun_pull)
  list(APPEND PRODUCT dtrun_pull)
endif()
if(TARGET dtrun_serve)
  list(APPEND PRODUCT dtrun_serve)
endif()
if(TARGET dtrun_mpi)
  list(APPEND PRODUCT dtrun_mpi)
endif()
add_custom_target(product DEPENDS ${PRODUCT})

install(FILES scripts/completion/dtrun.bash RENAME dtrun DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES scripts/completion/dtrun.zsh RENAME _dtrun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES scripts/completion/dtrun.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/scripts/uninstall.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_PACKAGE_CONTACT "the authors of dtrun <dtrun@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # asks dpkg-shlibdeps, of dpkg-dev
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, graphviz")
if(CMAKE_CROSSCOMPILING) # for arm64; dpkg-shlibdeps must know that, too
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/for_another_machine.cmake)
  file(WRITE ${CPACK_PROJECT_CONFIG_FILE} "set(ENV{DEB_HOST_ARCH} arm64)\n")
endif()
include(CPack)
