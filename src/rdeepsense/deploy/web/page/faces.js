// The faces that were packed with this page; each file of faces/ adds its own.
export const faces = {};
