"""Opens every collection of a database with pymongo, and prints their names as JSON. Arguments: a URI, the name of the database."""

import json
import sys

import pymongo

uri, name = sys.argv[1:]
database = pymongo.MongoClient(uri)[name]
names = []
for found in database.list_collections():
    collection = database[found["name"]]
    if found["type"] != "view":
        collection.index_information()
    collection.options()
    collection.find_one()
    names.append(found["name"])
print(json.dumps(sorted(names)))
