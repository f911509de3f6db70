-- Runs a program while it loads.
-- expect: undefined variable 'os'
os.execute("touch touched")
